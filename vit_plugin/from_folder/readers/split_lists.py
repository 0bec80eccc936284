"""Lists of the images of a part: ``train.txt``, ``meta/test.txt``, ``train_test_split.txt``."""

import re
from collections.abc import Iterator
from pathlib import Path

from vit_plugin.files.text import read_lines

from .findings import Findings
from .image_tree import Tree
from .splits import SPLITS, Split, split_in

FORMS = ('.txt', '.lst', '.csv', '.tsv')  # suffixes
LABEL = re.compile(r'([\s,;]+[\w.-]+)+$')  # behind a name
# Two files of the Caltech birds: a number and its image, and whether this is one to train on.
NUMBERED, FLAGS = 'images.txt', 'train_test_split.txt'


def images_of(tree: Tree, place: Path, findings: Findings) -> Iterator[Path]:
    """The images in a folder, or in a list with a path on each line."""
    if place.is_dir():
        yield from (image for image in tree.images if place in image.parents)
        return
    for line in read_lines(place):
        found = tree.index.match(line, place)
        image = tree.index.only(found, f'{line!r} of {place}', findings)
        if image:
            yield image
        elif not found:
            findings.note(f'lines of {place.name} left out, whose image is not there', line)


def listed_splits(tree: Tree, findings: Findings) -> tuple[dict[Path, Split], list[Path]]:
    """The part of each image by lists that are named for parts, and the lists.

    A line has a path, with or without its suffix, maybe with a label behind it. An image on lists
    of several parts is of that furthest from training.
    """
    parts: dict[Path, Split] = {}
    used = []
    for file in tree.others:
        found = dict(_lines_of(tree, file, findings))
        if found:
            used.append(file)
        for image, split in found.items():
            parts[image] = max(split, parts.get(image, split), key=SPLITS.index)
    return parts, used


def _lines_of(tree: Tree, file: Path, findings: Findings) -> Iterator[tuple[Path, Split]]:
    if file.name == FLAGS and (numbered := file.with_name(NUMBERED)).is_file():
        flags = dict(line.split(maxsplit=1) for line in read_lines(file))
        for line in read_lines(numbered):
            number, _, name = line.partition(' ')
            if found := tree.index.match(name, numbered):
                yield found[0], 'train' if flags.get(number) == '1' else 'test'
        return
    split = split_in(file.stem)
    if split is None or file.suffix.lower() not in FORMS:
        return
    for line in read_lines(file):
        names = (line, LABEL.sub('', line))
        found = next(filter(None, (tree.index.match(name, file) for name in names)), [])
        if image := tree.index.only(found, f'{line!r} of {file}', findings):
            yield image, split
