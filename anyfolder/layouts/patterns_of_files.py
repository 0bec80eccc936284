"""Derive the path patterns of a layout from the paths of files.

When a folder is ambiguous, the error message proposes a layout for it, see :mod:`.answers`. The
patterns in that proposal come from here. :class:`~.path_pattern.PathPattern` has their syntax.
"""

import os
from collections.abc import Iterable, Sequence
from itertools import repeat, takewhile
from pathlib import Path

from anyfolder.readers.splits import split_of

Parts = tuple[str, ...]
ANY = '*'
# One letter for each folder that images and labels share: a field `{a}`, `{b}`, ... of patterns.
FIELD_NAMES = 'abcdefgh'


def patterns_of(folder: Path, files: Sequence[Path]) -> list[str]:
    """Patterns of files below a folder, one for each depth at which there are files.

    A folder or name that all files of a depth share stays. Folders of splits become the field
    ``split``, and what differs otherwise becomes ``*``.
    """
    by_depth: dict[int, list[Parts]] = {}
    for file in files:
        parts = file.relative_to(folder).parts
        by_depth.setdefault(len(parts), []).append(parts)
    patterns = []
    for paths in by_depth.values():
        names = {parts[-1] for parts in paths}
        name = names.pop() if len(names) == 1 else f'*{_suffix(Path(name) for name in names)}'
        folders = _folder_patterns(paths, range(len(paths[0]) - 1), repeat(ANY))
        patterns.append('/'.join([*folders, name]))
    return patterns


def paired_patterns(
    folder: Path, pairs: Sequence[tuple[Path, Path]]
) -> tuple[list[str], list[str]] | None:
    """Patterns of images and of their label files, related by common fields.

    The folders of an image and of its label share a head and a tail; between them are folders such
    as ``images`` and ``labels``: ``train/images/a`` and ``train/labels/a``. Pairs with the same
    folders in between, a head of the same length and a tail of the same length have one pattern.

    Returns:
        The patterns of images and those of labels, of equal number and in the same order. None if
        no rule relates the names of images and labels, or if more than 8 folders are shared.
    """
    groups: dict[tuple[Parts, Parts, int, int], list[tuple[Path, Path]]] = {}
    for pair in pairs:
        image_folders, label_folders = (path.relative_to(folder).parts[:-1] for path in pair)
        head = shared_length(image_folders, label_folders)
        shorter = min(len(image_folders), len(label_folders))
        # A folder of the head is not counted in the tail again.
        tail = min(shared_length(image_folders[::-1], label_folders[::-1]), shorter - head)
        image_middle = image_folders[head : len(image_folders) - tail]
        label_middle = label_folders[head : len(label_folders) - tail]
        groups.setdefault((image_middle, label_middle, head, tail), []).append(pair)
    images, labels = list[str](), list[str]()
    for (image_middle, label_middle, head, tail), group in groups.items():
        folders = [image.relative_to(folder).parts[:-1] for image, _ in group]
        levels = [*range(head), *range(-tail, 0)]
        names = _name_patterns(group)
        if names is None or len(levels) > len(FIELD_NAMES):
            return None
        shared = _folder_patterns(folders, levels, (f'{{{letter}}}' for letter in FIELD_NAMES))
        images.append('/'.join([*shared[:head], *image_middle, *shared[head:], names[0]]))
        labels.append('/'.join([*shared[:head], *label_middle, *shared[head:], names[1]]))
    return images, labels


def _folder_patterns(
    paths: Sequence[Parts], levels: Iterable[int], placeholders: Iterable[str]
) -> list[str]:
    """The pattern of the folder at each level of several paths.

    A level has the only name of its folders, the field ``split`` if all of them are splits, or else
    its placeholder. All fields ``split`` of a path must be equal, so a further level of splits has
    that field only if its names are the same: for ``train/train`` but not for ``train/train2017``.
    """
    patterns: list[str] = []
    splits: list[str] | None = None  # the folder of each path at the first level of splits
    for level, placeholder in zip(levels, placeholders, strict=False):
        names = [path[level] for path in paths]
        if len({*names}) == 1:
            patterns.append(names[0])
        elif all(map(split_of, names)) and splits in (None, names):
            splits = names
            patterns.append('{split}')
        else:
            patterns.append(placeholder)
    return patterns


def shared_length(first: Sequence[str], second: Sequence[str]) -> int:
    """The number of leading parts that are equal."""
    return len([*takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False))])


def _name_patterns(pairs: Sequence[tuple[Path, Path]]) -> tuple[str, str] | None:
    """The patterns of the names of images and labels; None if a pair does not share its core.

    The core is what remains of a name without the beginning and the end that all images, or all
    labels, have in common. It becomes the field ``name``, unless it is empty in all names, as for
    ``1/image.png`` and ``1/mask.png``, ``2/image.png`` and ``2/mask.png``.
    """
    images, labels = zip(*pairs, strict=True)
    stems = [[path.stem for path in files] for files in (images, labels)]
    affixes = [_affixes(names) if len(pairs) > 1 else ('', '') for names in stems]
    image_cores, label_cores = (
        [name[len(start) : len(name) - len(end)] for name in names]
        for names, (start, end) in zip(stems, affixes, strict=True)
    )
    if image_cores != label_cores:
        return None
    core = '{name}' if any(image_cores) else ''
    image, label = (
        f'{start}{core}{end}{_suffix(files)}'
        for (start, end), files in zip(affixes, (images, labels), strict=True)
    )
    return image, label


def _affixes(stems: Sequence[str]) -> tuple[str, str]:
    """The common beginning and end of all names, which do not overlap in any name.

    Digits next to the core are left to it, since they belong to a number that varies: the common
    beginning of ``a10`` and ``a11`` is ``a``.
    """
    start = _common_beginning(stems)
    remainders = [stem[len(start) :] for stem in stems]
    end = _common_beginning([remainder[::-1] for remainder in remainders])[::-1]
    return start, end


def _common_beginning(texts: Sequence[str]) -> str:
    """The common beginning of texts, without digits at its end."""
    return os.path.commonprefix(texts).rstrip('0123456789')  # noqa: RUF071  letters are compared


def _suffix(files: Iterable[Path]) -> str:
    """The common suffix of files, or ``.*`` if they differ."""
    suffixes = {file.suffix for file in files}
    return suffixes.pop() if len(suffixes) == 1 else '.*'
