"""The names of mask classes, in files next to the masks."""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from PIL import ImageColor

from anyfolder.errors import InputError
from anyfolder.text import LONGEST_IN_LIST, read_lines

from .class_names import check_same_names, class_name
from .image_tree import Tree
from .name_files import names_by_number
from .tables import TABLE_SUFFIXES, WHOLE_NUMBER, read_table

MASK_NAME_FILES = (
    'classes.txt',
    'labels.txt',
    'class_names.txt',
    '_classes.csv',
    'labelmap.txt',
    'class_dict.csv',
)
COLOR_LIST = re.compile(r'colou?rs?.*\.txt$', re.IGNORECASE)
# Column titles of class names, of class numbers, and of colors in one column or three.
NAME_TITLES = ('name', 'label', 'class', 'classes', 'category')
NUMBER_TITLES = ('id', 'index', 'value', 'number')
CHANNEL_TITLES = ('r', 'red', 'g', 'green', 'b', 'blue')
COLOR_TITLES = (*CHANNEL_TITLES, 'hex', 'color', 'colour', 'rgb')
COLORED_LINE = re.compile(r'(\d+[\s,]+\d+[\s,]+\d+)[\s,]+(\D.*)')  # a color and a name
FIRST_COLOR = 1 << 24  # values from here on are colors: FIRST_COLOR + 65536 red + 256 green + blue


class NamedValues(NamedTuple):
    """The names of mask values in a file.

    Attributes:
        numbers: the name of each number.
        colors: the name of each color.
        file: the file.
    """

    numbers: Mapping[int, str] = {}
    colors: Mapping[int, str] = {}
    file: Path | None = None


def names_in_files(tree: Tree) -> NamedValues:
    """The class names: in a file with a known name, in a table or list, or in nnU-Net's JSON.

    Another table or list must have colors, or numbers and the word class in its name.

    Raises:
        InputError: if a file with a known name is a table about something else, or if two such
            files differ.
    """
    for name in MASK_NAME_FILES:
        values_in = {file: read_names(file) for file in tree.others if file.name.lower() == name}
        check_same_names(
            [(file, (named.numbers, named.colors)) for file, named in values_in.items()]
        )
        if not values_in:
            continue
        file, named = next(iter(values_in.items()))
        if named.file is None:
            raise InputError(
                f'{str(file)!r} has neither a value and a name on each line nor the '
                'columns name, r, g and b; write one of these.'
            )
        return named
    for file in tree.others:
        if file.suffix.lower() in ('.csv', '.tsv') or COLOR_LIST.search(file.name):
            named = read_names(file)
            if named.colors or (named.numbers and 'class' in file.stem.casefold()):
                return named
    return next(filter(None, (_names_in_json(tree, file) for file in tree.others)), NamedValues())


def _names_in_json(tree: Tree, file: Path) -> NamedValues | None:
    """The names in nnU-Net's ``dataset.json``: ``labels``, numbers by names or names by numbers."""
    if file.name.lower() != 'dataset.json':
        return None
    content = tree.contents.json(file)
    labels = content.get('labels') if isinstance(content, Mapping) else None
    if not isinstance(labels, Mapping) or not labels:
        return None
    pairs = [(str(name), str(number)) for name, number in labels.items()]
    if all(WHOLE_NUMBER.fullmatch(name) for name, _ in pairs):
        pairs = [(name, number) for number, name in pairs]
    if not all(WHOLE_NUMBER.fullmatch(number) for _, number in pairs):
        return None
    numbers = sorted((int(number), class_name(name)) for name, number in pairs)
    return NamedValues(dict(numbers), file=file)


def read_names(file: Path) -> NamedValues:
    """The class names in a file; nothing, without the file, for a table about something else.

    Supported are a name on each line, where LabelMe's first is for pixels without a class; lines of
    ``r g b name``, or ``name:r,g,b:parts:actions`` as in CVAT's ``labelmap.txt``; and a table whose
    header has a name column, and a number column, a color column or three columns for red, green
    and blue.

    Raises:
        InputError: for an invalid color, or a color with two names.
    """
    if file.suffix.lower() not in TABLE_SUFFIXES:
        lines = read_lines(file, LONGEST_IN_LIST)
        # TensorFlow Lite has a file of this name, too, with a name on each line.
        if file.name.lower() == 'labelmap.txt' and any(':' in line for line in lines):
            parts = (line.partition(':') for line in lines if not line.startswith('#'))
            pairs: list[Sequence[str]] = [(rest.partition(':')[0], name) for name, _, rest in parts]
        else:
            pairs = [match.groups() for line in lines if (match := COLORED_LINE.match(line))]
        if pairs:
            return NamedValues(colors=_colors(pairs, file), file=file)
        # In LabelMe, `__ignore__` has the number -1, so the next name has 0.
        names = [class_name(name) for name in names_by_number(lines) if name != '__ignore__']
        return NamedValues(dict(enumerate(names)), file=file)
    header, *rows = read_table(file) or [[]]
    colors = _columns(header, COLOR_TITLES)
    numbers = _columns(header, NUMBER_TITLES, colors)
    names = _columns(header, NAME_TITLES, [*colors, *numbers])
    if len(colors) > 3:  # another column repeats red, green and blue, such as hex
        colors = colors[:3]
    if not names or not (numbers or len(colors) in (1, 3)):
        return NamedValues()
    if not _columns(header, CHANNEL_TITLES):  # each column has the whole color, such as hex
        colors = colors[:1]
    last = max(*colors, *numbers[:1], names[0])
    rows = [row for row in rows if len(row) > last]
    numbered = {
        int(row[numbers[0]]): class_name(row[names[0]])
        for row in rows
        if numbers and WHOLE_NUMBER.fullmatch(row[numbers[0]])
    }
    pairs = [(' '.join(row[i] for i in colors), row[names[0]]) for row in rows if colors]
    return NamedValues(dict(sorted(numbered.items())), _colors(pairs, file), file)


def _columns(header: list[str], words: Sequence[str], taken: Sequence[int] = ()) -> list[int]:
    """The columns with one of these words in the title, in the order of the words.

    Columns in ``taken`` are left out.
    """
    ranks = {}
    for i, title in enumerate(header):
        in_title = {*re.split('[^a-z]+', title.casefold())}
        matching = [rank for rank, word in enumerate(words) if word in in_title]
        if matching and i not in taken:
            ranks[i] = matching[0]
    return sorted(ranks, key=lambda i: ranks[i])


def _colors(pairs: Iterable[Sequence[str]], file: Path) -> dict[int, str]:
    """The names of colors, from pairs of color and name."""
    name_of: dict[int, str] = {}
    for text, name in pairs:
        value = _color(text, file)
        if name_of.setdefault(value, class_name(name)) != class_name(name):
            raise InputError(f'{str(file)!r} names the color {text!r} twice; correct it.')
    return name_of


def _color(text: str, file: Path) -> int:
    """The value of a color: ``#ff0000``, or three numbers."""
    numbers = re.findall(r'\d+', text)
    if len(numbers) == 3 and all(WHOLE_NUMBER.fullmatch(one) and int(one) < 256 for one in numbers):
        return _mask_value(*map(int, numbers))
    for word in (text.strip(), f'#{text.strip()}'):
        with suppress(ValueError):
            return _mask_value(*ImageColor.getrgb(word)[:3])
    raise InputError(
        f'{text!r} in {str(file)!r} is not a color; write three numbers from 0 to 255 or '
        '#rrggbb; correct it.'
    )


def _mask_value(red: int, green: int, blue: int) -> int:
    """The mask value of a color. In masks, a gray is its own value."""
    return red if red == green == blue else FIRST_COLOR + (red << 16) + (green << 8) + blue
