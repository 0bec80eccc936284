"""The class of each value, gray or color of masks.

Programs export masks in several ways. Values that are numbers of classes stay what they are, and
255 is a pixel of no class. Few values far apart, such as 0 and 255, or 0 and 128, are grays:
classes in their order. Colors are looked up in CVAT's ``labelmap.txt``, or are classes in the
order of their values.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from vit_plugin.errors import ConfigError
from vit_plugin.files.text import read_lines, read_text

from .class_names import class_name
from .findings import Findings

NOT_LABELED = 255
MOST = 254  # classes
GRAY = 100  # among few values, one from here on is a gray rather than the number of a class
MAX_GRAY_VALUES = 8  # of a mask without names
MAINLY = 0.9  # of the pixels

JPEG = b'\xff\xd8'  # the first bytes
# Words in the header of a table of colors: of the name, and of one column or three.
TITLES = ('name', 'label', 'class', 'classes', 'class_name', 'label_name', 'category')
COLORS = ('r', 'red', 'g', 'green', 'b', 'blue', 'hex', 'color', 'colour', 'rgb', 'color_rgb')
COLOR = 1 << 24  # from here on a value is a color, COLOR + 65536 red + 256 green + blue


@dataclass
class MaskValues:
    """The classes, and the class of each value of a mask.

    Attributes:
        classes: their names.
        numbers: the number of the class of each value, 255 for none.
        by_color: whether masks with a palette are read by its colors.
    """

    classes: tuple[str, ...]
    numbers: Mapping[int, int]
    by_color: bool = False

    def apply(self, values: np.ndarray) -> np.ndarray:
        """The classes (H, W), uint8, of values (H, W)."""
        found, where = np.unique(values, return_inverse=True)
        numbers = np.array([self.numbers[value] for value in found.tolist()], np.uint8)
        return numbers[where].reshape(values.shape)


def values_of(mask: Path, by_color: bool = False) -> np.ndarray:
    """The values (H, W), int32, of a mask: numbers, or from :data:`COLOR` on, colors.

    Args:
        mask: the file.
        by_color: whether the colors of a palette count rather than its numbers.
    """
    with Image.open(mask) as stored:
        image = ImageOps.exif_transpose(stored)
        if (
            image.mode in ('L', '1')
            or image.mode.startswith('I')
            or (image.mode == 'P' and not by_color)
        ):
            return np.asarray(image).astype(np.int32)
        pixels = np.asarray(image.convert('L' if image.mode == 'LA' else 'RGB')).astype(np.int32)
    if pixels.ndim == 2:
        return pixels
    gray = (pixels == pixels[..., :1]).all(axis=-1)
    return np.where(gray, pixels[..., 0], COLOR + pixels @ np.array([1 << 16, 1 << 8, 1], np.int32))


def is_lossy(mask: Path) -> bool:
    """True for JPEG, which changes values at edges."""
    with open(mask, 'rb') as file:
        return file.read(2) == JPEG


def choose_classes(
    counts: Counter[int], named: Path | None, findings: Findings, lossy: Path | None = None
) -> MaskValues:
    """The classes of masks that have these pixels of each value.

    Args:
        counts: the pixels of each value, or color.
        named: the file with the names of the classes, or None.
        findings: what is noticed.
        lossy: one of the masks that is a JPEG file, or None.

    Raises:
        ConfigError: if the values cannot be those of classes, or are not as many as the names.
    """
    values = sorted(counts)
    colors, names = colors_of(named), _names(named)
    unnamed = len(values) > MAX_GRAY_VALUES and not (names or colors)
    if lossy and min(np.diff(values), default=0) < GRAY:
        raise ConfigError(
            f'--data: {str(lossy)!r} is a JPEG file, which changes the values of masks at edges: '
            f'they have {len(values)}, which are not the numbers of classes; save masks as PNG.'
        )
    if len(values) > MOST + 1 or (unnamed and _are_smoothed(counts)):
        raise ConfigError(
            f'--data: the masks have {len(values)} values, up to {_word(values[-1])}, which are '
            'not the numbers of classes; they may be smoothed or JPEG files, which change values: '
            'save masks as PNG with the number of the class of each pixel, or name the classes in '
            'classes.txt.'
        )
    found = _by_color(counts, colors, named) if colors else _numbers(values, names, findings)
    empty = sorted({*range(len(found.classes))} - {*found.numbers.values()})
    findings.note_all(
        'classes of which no mask has a pixel: no pixel of', (found.classes[i] for i in empty)
    )
    total = sum(counts.values())
    if NOT_LABELED in found.numbers.values():
        share = (
            sum(counts[value] for value, number in found.numbers.items() if number == NOT_LABELED)
            / total
        )
        findings.note(
            'masks with pixels of no class, value 255', f'{100 * share:.1f} % of all pixels'
        )
    return found


def _numbers(values: list[int], names: list[str], findings: Findings) -> MaskValues:
    """The classes of values, or of colors without names."""
    labeled = [value for value in values if value != NOT_LABELED]
    as_grays = _are_grays(values)
    if names and not as_grays and labeled[-1] < len(names):
        numbers = {
            value: value for value in values
        }  # 255 is that of no class in the canonical form, too
        return MaskValues(tuple(names), numbers)
    chosen = values if as_grays else labeled
    if names and chosen[-1] >= COLOR:
        raise ConfigError(
            f'--data: the masks have colors, such as {_word(chosen[-1])}, and the classes have '
            'names in an order, which says nothing of colors; write class_dict.csv with the '
            'columns name, r, g and b.'
        )
    if names and len(names) != len(chosen):
        shown = ', '.join(map(_word, chosen[:10])) + ' ...' * (len(chosen) > 10)
        raise ConfigError(
            f'--data: the masks have the values {shown}, and {len(names)} classes have names, '
            'from class 0; give as many names, or mark pixels of no class by 255.'
        )
    classes = tuple(names) or tuple(f'class {_word(value)}' for value in chosen)
    if len(classes) < 2:
        raise ConfigError(
            f'--data: all pixels of all masks have the value {_word(values[0])}, so that there is '
            'nothing to tell apart; look at how the masks were saved.'
        )
    if chosen != list(range(len(chosen))):
        findings.note_all(
            'values of masks, taken as classes in this order',
            (f'{_word(value)} is {name!r}' for value, name in zip(chosen, classes, strict=True)),
        )
    numbers = {value: number for number, value in enumerate(chosen)}
    return MaskValues(classes, {value: numbers.get(value, NOT_LABELED) for value in values})


def _are_grays(values: list[int]) -> bool:
    """True if few values are far apart, so that they are grays or colors, of which 255 is one."""
    others = [value for value in values if value != NOT_LABELED]
    return len(values) <= MAX_GRAY_VALUES and (len(others) < 2 or max(others) >= GRAY)


def _are_smoothed(counts: Counter[int]) -> bool:
    """True if many values have gaps between them, or are the few pixels between two grays."""
    largest, total = max(counts), sum(counts.values())
    two = sum(count for _, count in counts.most_common(2))
    return largest > 2 * len(counts) or (largest >= GRAY and two > MAINLY * total)


def _by_color(counts: Counter[int], colors: Mapping[int, str], file: Path | None) -> MaskValues:
    """The classes of colors that a file names."""
    for value in counts:
        if value not in colors:
            raise ConfigError(
                f'--data: the masks have the color {_hex(value)}, which {str(file)!r} does not '
                'name; add it.'
            )
    classes = tuple(dict.fromkeys(name for value, name in colors.items() if value in counts))
    return MaskValues(
        classes, {value: classes.index(colors[value]) for value in counts}, by_color=True
    )


def colors_of(named: Path | None) -> dict[int, str]:
    """The names of colors, or nothing.

    CVAT's ``labelmap.txt`` has lines of ``name:r,g,b:parts:actions``, and a table a column of names
    and the columns r, g and b, or one of such colors or of hexadecimal ones.

    Raises:
        ConfigError: for a color that is none, or that has two names.
    """
    if named is None:
        return {}
    if named.name.lower() == 'labelmap.txt':
        rows = [line.split(':') for line in read_lines(named) if not line.startswith('#')]
        pairs = [(row[0], row[1]) for row in rows if len(row) > 1]
    else:
        header, *lines = _table(named) or [[]]
        words = [word.strip().casefold() for word in header]
        columns = [words.index(word) for word in words if word in COLORS]
        columns.sort(key=lambda column: COLORS.index(words[column]))
        names = [column for column, word in enumerate(words) if word in TITLES]
        if not names or len(columns) not in (1, 3):
            return {}
        pairs = [
            (line[names[0]], ' '.join(line[column] for column in columns))
            for line in lines
            if len(line) > max(*names, *columns)
        ]
    found: dict[int, str] = {}
    for name, text in pairs:
        value = _color(text, named)
        if found.setdefault(value, class_name(name)) != class_name(name):
            raise ConfigError(f'--data: {str(named)!r} names the color {text!r} twice; correct it.')
    return found


def _color(text: str, file: Path) -> int:
    """The value of a color: ``#ff0000``, or three numbers."""
    if found := re.fullmatch(r'\s*#?([0-9a-fA-F]{2})([0-9a-fA-F]{2})([0-9a-fA-F]{2})\s*', text):
        return _value(*(int(part, 16) for part in found.groups()))
    numbers = [int(number) for number in re.findall(r'\d+', text)]
    if len(numbers) != 3 or max(numbers) > 255:
        raise ConfigError(
            f'--data: {text!r} in {str(file)!r} is no color, which is three numbers from 0 to 255 '
            'or #rrggbb; correct it.'
        )
    return _value(*numbers)


def _table(named: Path) -> list[list[str]]:
    """The lines of a CSV file; none of another file."""
    if named.suffix.lower() != '.csv':
        return []
    text = read_text(named)
    mark = max(',;\t', key=text.partition('\n')[0].count)
    rows = csv.reader(io.StringIO(text), delimiter=mark, skipinitialspace=True)
    return [line for line in rows if line]


def _value(red: int, green: int, blue: int) -> int:
    return red if red == green == blue else COLOR + (red << 16) + (green << 8) + blue


def _names(named: Path | None) -> list[str]:
    """A name on each line, or Roboflow's ``_classes.csv`` with a value and a name.

    LabelMe's first name is that of pixels without a class.

    Raises:
        ConfigError: if a table has other columns.
    """
    if named is None or colors_of(named):
        return []
    if named.suffix.lower() != '.csv':
        return [class_name(name) for name in read_lines(named) if name != '__ignore__']
    _, *rows = _table(named)
    if not all(len(row) > 1 and row[0].strip().isdecimal() for row in rows):
        raise ConfigError(
            f'--data: {str(named)!r} has neither a value and a name on each line, nor the columns '
            'name, r, g and b; write one of these.'
        )
    return [class_name(row[1]) for row in sorted(rows, key=lambda row: int(row[0]))]


def _hex(value: int) -> str:
    return f'#{value - COLOR if value >= COLOR else value * 0x10101:06x}'


def _word(value: int) -> str:
    return str(value) if value < COLOR else f'#{value - COLOR:06x}'
