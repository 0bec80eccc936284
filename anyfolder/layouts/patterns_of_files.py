"""Derive the patterns of a layout from the paths of files."""

import os
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path

from anyfolder.readers.splits import split_of

Parts = tuple[str, ...]
ANY = '*'


def patterns_of(folder: Path, files: Sequence[Path]) -> list[str]:
    """Patterns of files below a folder: for one file its path, for several their common parts.

    Folders that are splits become the field ``split``, and others that differ become ``*``.
    """
    by_depth: dict[int, list[Parts]] = {}
    for file in files:
        parts = file.relative_to(folder).parts
        by_depth.setdefault(len(parts), []).append(parts)
    found = []
    for places in by_depth.values():
        names = {parts[-1] for parts in places}
        name = names.pop() if len(names) == 1 else f'*{_suffix(Path(one) for one in names)}'
        folders = (_part({parts[i] for parts in places}, ANY) for i in range(len(places[0]) - 1))
        found.append('/'.join([*folders, name]))
    return found


def paired_patterns(
    folder: Path, pairs: Sequence[tuple[Path, Path]]
) -> tuple[list[str], list[str]] | None:
    """Patterns of images and of their label files, whose fields match them.

    None if no rule relates the names of images and labels.
    """
    groups: dict[tuple[Parts, Parts, int, int], list[tuple[Path, Path]]] = {}
    for image, label in pairs:
        one, other = (path.relative_to(folder).parts[:-1] for path in (image, label))
        head = _shared(one, other)
        tail = min(_shared(one[::-1], other[::-1]), min(len(one), len(other)) - head)
        own, its = one[head : len(one) - tail], other[head : len(other) - tail]
        groups.setdefault((own, its, head, tail), []).append((image, label))
    images, labels = list[str](), list[str]()
    for (own, its, head, tail), group in groups.items():
        places = [image.relative_to(folder).parts[:-1] for image, _ in group]
        shared = [
            _part({parts[i] for parts in places}, f'{{{letter}}}')
            for letter, i in zip('abcdefgh', [*range(head), *range(-tail, 0)], strict=False)
        ]
        names = _names(group)
        if names is None or len(shared) < head + tail:
            return None
        for found, middle, name in zip((images, labels), (own, its), names, strict=True):
            found.append('/'.join([*shared[:head], *middle, *shared[head:], name]))
    return images, labels


def _part(names: set[str], varying: str) -> str:
    """The pattern of a folder: its name, the field for splits, or the given one."""
    if len(names) == 1:
        return next(iter(names))
    return '{split}' if all(map(split_of, names)) else varying


def _shared(one: Parts, other: Parts) -> int:
    """The number of leading parts that are equal."""
    return len([*takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))])


def _names(pairs: Sequence[tuple[Path, Path]]) -> tuple[str, str] | None:
    """The patterns of the names of images and labels, which share a core."""
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
    """The common beginning and end of all names; digits next to the rest are part of a number."""
    start, end = (
        os.path.commonprefix(one).rstrip('0123456789')  # noqa: RUF071  letters are compared
        for one in (stems, [stem[::-1] for stem in stems])
    )
    return start, end[::-1]


def _suffix(files: Iterator[Path] | Sequence[Path]) -> str:
    suffixes = {file.suffix for file in files}
    return suffixes.pop() if len(suffixes) == 1 else '.*'
