"""Which mask belongs to which image."""

import os
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

from .findings import Findings
from .identity import KINDS, Index
from .image_tree import Tree
from .mask_names import cityscapes_kind
from .records import Records
from .split_lists import read_lists
from .splits import without_split

# What follows the name of its image in the name of a mask, and what images may have there.
WORDS = ('mask', 'masks', 'seg', 'segmentation', 'label', 'labels', 'gt', 'groundtruth', 'l', 'ids')
ENDING = re.compile(rf'[_-]?({"|".join(WORDS[:-1])}|gt(fine|coarse)_label.*ids)$', re.IGNORECASE)
IMAGE_ENDINGS = ('', '_leftImg8bit', '_sat', '_image', '_rgb')


def has_masks(tree: Tree) -> bool:
    """True if a folder has images, masks and little else, in folders so named or side by side."""
    kinds = set(map(_kind, tree.images_in))
    if 'mask' in kinds:
        return '' not in kinds and 'image' in kinds
    return 4 * len(pairs_of(tree, Findings())[0]) > len(tree.images)


def _images_and_masks(tree: Tree) -> tuple[list[Path], list[Path]]:
    """By their folders, or else masks beside images and named after them."""
    images_of: dict[str, list[Path]] = defaultdict(list)
    for folders, found in tree.images_in.items():
        images_of[_kind(folders)] += found
    if masks := images_of['mask']:
        images = images_of['image'] or images_of['']
    elif masks := [path for path in tree.images if _is_named_mask(path)]:
        stems = {(path.parent, path.stem) for path in tree.images}
        masks = [
            path
            for path in masks
            if any((path.parent, name) in stems for name in _names_of_image(path))
        ]
        taken = {*masks}
        images = [path for path in tree.images if path not in taken]
    if kind := cityscapes_kind(masks):
        masks = [mask for mask in masks if mask.stem.endswith(kind)]
    return (images, masks) if masks else ([], [])


def pairs_of(tree: Tree, findings: Findings) -> tuple[Records, list[Path]]:
    """The images with a mask, and the lists of their parts.

    An image without a mask is rejected if it lies where others have one.
    """
    images, masks = _images_and_masks(tree)
    if not images:
        return [], []
    by_core: dict[str, set[str]] = {}
    for image, core in zip(images, _cores(images), strict=True):
        by_core.setdefault(core, set()).add(image.stem)
    # NAME.jpg.png is that of NAME.jpg, and mask_1.png that of img_1.jpg
    names = {
        mask: [mask.stem, *_names_of_image(mask), *sorted(by_core.get(core, ()))]
        for mask, core in zip(masks, _cores(masks), strict=True)
    }
    index = Index(tree.folder, images)
    pairs = index.pair(names, findings)
    mask_of_image = {image: mask for mask, image in pairs.image_of.items()}
    lists = read_lists(tree, findings, index)
    listed = {*lists.splits.values()}
    has_parts = any(map(tree.split, images))
    records = []
    for image in images:
        own, mask = tree.split(image), mask_of_image.get(image)
        split = lists.splits.get(image) or own
        if (image not in lists.splits and (own or 'train') in listed) or image in pairs.unclear:
            continue  # named among what is left out
        if mask:
            records.append(tree.record(image, mask, split, mask=mask))
        elif split or not has_parts:
            what = 'images have no mask of their name'
            findings.reject(what, 'add them, or remove the images', str(image))
    return records, [*lists.files]


@cache
def _kind(folders: tuple[str, ...]) -> str:
    """The kind of files by their folders: ``'image'``, ``'mask'``, ``'other'`` or ``''``."""
    for part in reversed(folders):
        for kind, names in KINDS.items():
            if not names.isdisjoint({part.casefold(), without_split(part)}):
                return kind
    return ''


def _is_named_mask(path: Path) -> bool:
    stem = os.path.splitext(str(path).lower())[0]
    return stem.endswith(WORDS) and ENDING.search(stem) is not None


def _names_of_image(mask: Path) -> list[str]:
    return [ENDING.sub('', mask.stem) + ending for ending in IMAGE_ENDINGS]


def _cores(paths: list[Path]) -> list[str]:
    """The names of files without that with which all begin, and with which all end.

    The digits next to what differs are of a number.
    """
    stems = [path.stem for path in paths]
    start, end = (
        len(re.sub(r'\d+$', '', os.path.commonprefix(each)))  # noqa: RUF071  letters are compared
        for each in (stems, [stem[::-1] for stem in stems])
    )
    return [stem[start : len(stem) - end] for stem in stems]
