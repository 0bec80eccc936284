"""Derive the patterns of a layout from the paths of files."""

import os
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path

from anyfolder.readers.splits import split_of

Parts = tuple[str, ...]
ANY = '*'
FIELD_NAMES = 'abcdefgh'  # fields for the folders that images and labels share


def patterns_of(folder: Path, files: Sequence[Path]) -> list[str]:
    """Patterns of files below a folder: for one file its path, for several their common parts.

    Folders that are splits become the field ``split``, and others that differ become ``*``.
    """
    by_depth: dict[int, list[Parts]] = {}
    for file in files:
        parts = file.relative_to(folder).parts
        by_depth.setdefault(len(parts), []).append(parts)
    patterns = []
    for paths in by_depth.values():
        names = {parts[-1] for parts in paths}
        name = names.pop() if len(names) == 1 else f'*{_suffix(Path(name) for name in names)}'
        folders = (
            _folder_pattern({parts[i] for parts in paths}, ANY) for i in range(len(paths[0]) - 1)
        )
        patterns.append('/'.join([*folders, name]))
    return patterns


def paired_patterns(
    folder: Path, pairs: Sequence[tuple[Path, Path]]
) -> tuple[list[str], list[str]] | None:
    """Patterns of images and of their label files, related by common fields.

    The folders of an image and of its label share a head and a tail; between them are folders such
    as ``images`` and ``labels``: ``train/images/a`` and ``train/labels/a``. Pairs with the same
    folders in between, and as many others, have one pattern.

    None if no rule relates the names of images and labels, or if more than 8 folders are shared.
    """
    groups: dict[tuple[Parts, Parts, int, int], list[tuple[Path, Path]]] = {}
    for pair in pairs:
        of_image, of_label = (path.relative_to(folder).parts[:-1] for path in pair)
        head = shared_length(of_image, of_label)
        shorter = min(len(of_image), len(of_label))
        tail = min(shared_length(of_image[::-1], of_label[::-1]), shorter - head)
        image_middle = of_image[head : len(of_image) - tail]
        label_middle = of_label[head : len(of_label) - tail]
        groups.setdefault((image_middle, label_middle, head, tail), []).append(pair)
    images, labels = list[str](), list[str]()
    for (image_middle, label_middle, head, tail), group in groups.items():
        folders = [image.relative_to(folder).parts[:-1] for image, _ in group]
        shared = [
            _folder_pattern({parts[i] for parts in folders}, f'{{{letter}}}')
            for letter, i in zip(FIELD_NAMES, [*range(head), *range(-tail, 0)], strict=False)
        ]
        names = _name_patterns(group)
        if names is None or len(shared) < head + tail:
            return None
        images.append('/'.join([*shared[:head], *image_middle, *shared[head:], names[0]]))
        labels.append('/'.join([*shared[:head], *label_middle, *shared[head:], names[1]]))
    return images, labels


def _folder_pattern(names: set[str], varying: str) -> str:
    """The pattern of a folder: its only name, the field for splits, or else ``varying``."""
    if len(names) == 1:
        return next(iter(names))
    return '{split}' if all(map(split_of, names)) else varying


def shared_length(first: Sequence[str], second: Sequence[str]) -> int:
    """The number of leading parts that are equal."""
    return len([*takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False))])


def _name_patterns(pairs: Sequence[tuple[Path, Path]]) -> tuple[str, str] | None:
    """The patterns of the names of images and labels; None if a pair does not share its core.

    The core is what remains of a name without the beginning and the end that all images, or all
    labels, have in common.
    """
    columns = [[path.stem for path in column] for column in zip(*pairs, strict=True)]
    ends = [_affixes(stems) if len(pairs) > 1 else ('', '') for stems in columns]
    cores = [
        [stem[len(start) : len(stem) - len(end)] for stem in stems]
        for stems, (start, end) in zip(columns, ends, strict=True)
    ]
    if cores[0] != cores[1]:
        return None
    suffixes = (_suffix(column) for column in zip(*pairs, strict=True))
    image, label = (
        f'{start}{{name}}{end}{suffix}' for (start, end), suffix in zip(ends, suffixes, strict=True)
    )
    return image, label


def _affixes(stems: Sequence[str]) -> tuple[str, str]:
    """The common beginning and end of all names, without digits next to the core.

    These belong to a number that varies.
    """
    start, end = (
        os.path.commonprefix(texts).rstrip('0123456789')  # noqa: RUF071  letters are compared
        for texts in (stems, [stem[::-1] for stem in stems])
    )
    return start, end[::-1]


def _suffix(files: Iterator[Path] | Sequence[Path]) -> str:
    """The common suffix of files, or ``.*`` if they differ."""
    suffixes = {file.suffix for file in files}
    return suffixes.pop() if len(suffixes) == 1 else '.*'
