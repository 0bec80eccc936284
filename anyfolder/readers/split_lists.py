"""Lists of the images of a part: ``train.txt``, ``meta/test.json``, ``train_test_split.txt``."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anyfolder.pixels.image_files import IMAGE_SUFFIXES
from anyfolder.text import LONGEST_IN_LIST, read_lines

from .findings import Findings
from .identity import Index
from .image_tree import Tree
from .splits import SPLITS, Split, split_in, split_of
from .table_columns import find_table, label_column
from .tables import FORMS as TABLES

TEXTS = ('.txt', '.lst', '.csv', '.tsv')  # suffixes
GAP = re.compile(r'[\s,;]+')  # between a name and a label
# Two files of the Caltech birds: a number and its image, and whether this is one to train on.
BIRDS = 'images.txt', 'train_test_split.txt'


@dataclass
class Lists:
    """What lists say.

    Attributes:
        splits: the part of each image; of several, the one furthest from training.
        labels: what stands behind the name of an image.
        files: the lists.
    """

    splits: dict[Path, Split] = field(default_factory=dict)
    labels: dict[Path, str] = field(default_factory=dict)
    files: dict[Path, None] = field(default_factory=dict)


def images_of(tree: Tree, place: Path, findings: Findings) -> Iterator[Path]:
    """The images in a folder, or in a list with a path on each line."""
    if place.is_dir():
        yield from (image for image in tree.images if place in image.parents)
        return
    lost = f'lines of {place.name} left out, whose image is not there'
    for line in read_lines(place, LONGEST_IN_LIST):
        if image := tree.resolve(line, place, None, findings, lost):
            yield image


def read_lists(
    tree: Tree,
    findings: Findings,
    index: Index | None = None,
    used: Collection[Path | None] = (),
) -> Lists:
    """The lists that are named for parts, or are JSON with the names of parts as keys.

    A line has a path, with or without its suffix, maybe with a label behind it. A table may have a
    column of parts.

    Args:
        tree: the files of the folder.
        findings: gets lines whose image is not there.
        index: of the images that count. Default: of all.
        used: files that are no lists, since they are annotations.
    """
    lists, index = Lists(), index or tree.index
    for file in (path for path in tree.others if path not in used):
        for split, names in _lines_of(tree, file):
            tried = ((index.match(name, file), label) for name, label in names.items())
            found, label = next((one for one in tried if one[0]), ([], ''))
            if image := index.only(found, f'{next(iter(names))!r} of {file}', findings):
                lists.splits[image] = max(split, lists.splits.get(image, split), key=SPLITS.index)
                lists.labels[image] = label or lists.labels.get(image, '')
                lists.files |= {file: None}
            elif lost := [name for name in names if name.lower().endswith(IMAGE_SUFFIXES)]:
                findings.warn(f'lines of {file.name} left out, whose image is not there', lost[0])
    return lists


def _lines_of(tree: Tree, file: Path) -> Iterator[tuple[Split, dict[str, str]]]:
    """The part of each line, and the names that it may have with the label behind each."""
    birds = [file.with_name(name) for name in BIRDS]
    if file in birds and all(map(Path.is_file, birds)):
        flags = dict(line.partition(' ')[::2] for line in read_lines(birds[1], LONGEST_IN_LIST))
        for line in read_lines(birds[0], LONGEST_IN_LIST):
            number, _, name = line.partition(' ')
            yield 'train' if flags.get(number, '').strip() == '1' else 'test', {name: ''}
        return
    suffix, split = file.suffix.lower(), split_in(file.stem)
    if suffix == '.json':
        content = tree.contents.json(file)
        named = content.items() if isinstance(content, Mapping) else ()
        parts = [(part, value) for key, value in named if (part := split_of(key))]
        of_image = ((name, said) for name, said in named if isinstance(said, str))
        parts += [(part, name) for name, said in of_image if (part := split_of(said))]
        for part, value in parts or ([(split, content)] if split else []):
            yield from ((part, {name: ''}) for name in _strings(value))
        return
    table = find_table(tree, file) if suffix in TABLES else None
    if table and (table.part or split):
        taken = (table.images, table.part)
        label = label_column([name for name in table.rows[0] if name not in taken])
        for row in table.rows:
            if own := table.part_of(row) if table.part else split:
                yield own, {row[table.images]: row[label] if label else ''}
    elif split and suffix in TEXTS:
        for line in read_lines(file, LONGEST_IN_LIST):
            gaps = reversed([*GAP.finditer(line)])
            shorter = {line[: gap.start()]: GAP.split(line[gap.end() :])[0] for gap in gaps}
            yield split, {line: '', **shorter}


def _strings(value: Any) -> Iterator[str]:
    """All text in a value of JSON but its keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, Mapping)):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _strings(each)
