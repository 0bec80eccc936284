"""Which mask belongs to which image."""

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from .array_masks import array_masks
from .findings import Findings
from .identity import Index
from .image_tree import Tree
from .map_sets import Role, choose_labels, kind_by_name, label_maps, role_of, share_names
from .masks_of_objects import check_masks_of_objects
from .name_keys import first_word, keys_of
from .paired_files import pair_files
from .path_text import stem_and_suffix
from .records import Records
from .split_lists import Lists, read_lists

# Endings of mask names after the image name (CamVid has `_L`), and endings of image names that they
# replace.
MASK_WORDS = ('mask', 'masks', 'seg', 'segmentation', 'label', 'labels', 'gt', 'groundtruth', 'l')
# Names of masks as they are; 'l' may be the left one of two photographs, and 'label' that of a
# bottle.
UNAMBIGUOUS_WORDS = ('mask', 'masks', 'seg', 'segmentation', 'gt', 'groundtruth')
MASK_ENDING = re.compile(rf'[_-]?({"|".join(MASK_WORDS)})$', re.IGNORECASE)
IMAGE_ENDINGS = ('', '_sat', '_image', '_rgb')
MIN_SHARED_IMAGES = 0.5  # fraction of a folder's images for which another folder also has maps


class MaskedImages(NamedTuple):
    """The images of a folder and their masks.

    Attributes:
        records: the images with a mask, in the split of their folder.
        lists: the content of lists of images.
        index: an index of all images, without masks.
        unused_maps: maps that are not the labels, already noted.
    """

    records: Records
    lists: Lists
    index: Index  # type: ignore[assignment]  # hides tuple.index, which nobody calls
    unused_maps: list[Path]


def has_masks(tree: Tree) -> bool:
    """True if a folder has mainly images and masks, in folders with such names or side by side.

    If names do not show the kind of all folders, their pixels are examined, too, since classes can
    be named like masks.
    """
    if array_masks(tree):
        return True
    kinds = set(map(kind_by_name, tree.images_in))
    if 'mask' in kinds and '' not in kinds:
        return 'image' in kinds
    if 'mask' in kinds or not _masks_next_to_images(tree):
        candidates = [folders for folders in tree.images_in if kind_by_name(folders) != 'image']
        if not share_names(tree, [*tree.images_in]):
            return False
        masks = label_maps(tree, candidates)
        taken = {*masks}
        images = [path for path in tree.images if path not in taken]
    else:
        images, masks = _images_and_masks(tree)
    index, keys = Index(tree.folder, images), keys_of(masks)
    words = {*map(first_word, keys_of(images).values())}
    paired = sum(
        bool(_match_mask(names, mask, index)) or first_word(keys[mask]) in words
        for mask, names in _possible_names(images, masks).items()
    )
    # Half of the images: if each has a mask, images are half of the files.
    return 4 * paired > len(tree.images) and 2 * paired > len(masks)


def masked_images(tree: Tree, findings: Findings) -> MaskedImages | None:
    """The images with a mask; None if a folder has no masks.

    An image without a mask is rejected if others in its folder have one.

    Raises:
        InputError: if an image has several maps that can be the labels.
    """
    images, masks = _images_and_masks(tree)
    if not images:
        return None
    index, names = Index(tree.folder, images), _possible_names(images, masks)
    masks, unused = _choose_masks(tree, masks, names, index, findings)
    pairs = pair_files(index, {mask: names[mask] for mask in masks}, findings)
    if 2 * len(pairs.image_of) < len(images):
        check_masks_of_objects(tree)
    mask_of_image = {image: mask for mask, image in pairs.image_of.items()}
    lists = read_lists(tree, findings, index, task_folder='Segmentation')
    listed_splits = {*lists.splits.values()}
    has_splits = any(map(tree.split, images))
    with_masks = {tree.split(image) for image in mask_of_image}
    records = []
    for image in images:
        split, mask = tree.split(image), mask_of_image.get(image)
        if (
            image not in lists.splits and (split or 'train') in listed_splits
        ) or image in pairs.conflicting:
            continue  # reported among the unused files
        if mask:
            records.append(tree.record(image, mask, split, mask=mask))
        elif split in ('val', 'test') and split not in with_masks:
            purpose = 'validate' if split == 'val' else split
            findings.warn(f'images to {purpose} without masks, left out', image)
        elif split or image in lists.splits or not has_splits:
            what = 'images have no mask of their name'
            findings.reject(what, 'add them, or remove the images', str(image))
    return MaskedImages(records, lists, index, unused)


def _images_and_masks(tree: Tree) -> tuple[list[Path], list[Path]]:
    """Tell images from masks by folder names, by names of masks next to images, or by pixels.

    Both are empty if there are no masks.
    """
    of_kind: dict[str, list[Path]] = defaultdict(list)
    for folders, paths in tree.images_in.items():
        of_kind[kind_by_name(folders)] += paths
    masks = of_kind['mask'] or _masks_next_to_images(tree)
    in_same_folders = bool(masks and not of_kind['mask'])
    unnamed = [folders for folders in tree.images_in if kind_by_name(folders) == '']
    if not in_same_folders and share_names(tree, [*tree.images_in]):
        maps = label_maps(tree, unnamed)
        # If all files that can be images have flat regions, they are drawings.
        are_drawings = not of_kind['image'] and len(maps) == len(of_kind[''])
        masks = masks if are_drawings else [*masks, *maps]
    if in_same_folders:
        candidates: Sequence[Path] = tree.images
    else:
        candidates = of_kind['image'] or of_kind['']
    taken = {*masks}
    images = [path for path in candidates if path not in taken]
    return (images, masks) if masks else ([], [])


def _masks_next_to_images(tree: Tree) -> list[Path]:
    """The masks next to their image, named after it or alone with it."""
    masks = [path for path in tree.images if _is_named_mask(path)]
    stems = {(path.parent, path.stem) for path in tree.images} if masks else set()
    alone = _alone_with_image(tree.images) if masks else {}
    return [
        path
        for path in masks
        if path in alone or any((path.parent, name) in stems for name in _names_of_image(path))
    ]


def _alone_with_image(paths: Iterable[Path]) -> dict[Path, Path]:
    """The image of each mask in folders of two files, such as p1/image.png and p1/mask.png."""
    files: dict[Path, list[Path]] = defaultdict(list)
    for path in paths:
        files[path.parent].append(path)
    pairs = {}
    for pair in files.values():
        masks = [path for path in pair if path.stem.casefold() in UNAMBIGUOUS_WORDS]
        if len(pair) == 2 and len(masks) == 1:
            pairs[masks[0]] = pair[1 - pair.index(masks[0])]
    return pairs


def _possible_names(images: list[Path], masks: list[Path]) -> dict[Path, list[str]]:
    """The possible names of each mask's image, the likeliest first.

    NAME.jpg.png is the mask of NAME.jpg, and mask_1.png that of img_1.jpg. A mask alone with an
    image in its folder is that of this image.
    """
    alone = _alone_with_image([*images, *masks])
    by_key: dict[str, set[str]] = defaultdict(set)
    for image, key in keys_of(images).items():
        by_key[key].add(image.stem)
    return {
        mask: [
            mask.stem,
            *_names_of_image(mask),
            *(sorted(by_key.get(key, ())) if key else ()),
            *([alone[mask].stem] if mask in alone else ()),
        ]
        for mask, key in keys_of(masks).items()
    }


def _match_mask(names: list[str], mask: Path, index: Index) -> Path | None:
    """The image of a mask, if the first name that matches is unique."""
    images = index.match_first(names, mask)
    return images[0] if len(images) == 1 else None


def _choose_masks(
    tree: Tree,
    masks: list[Path],
    names: Mapping[Path, list[str]],
    index: Index,
    findings: Findings,
) -> tuple[list[Path], list[Path]]:
    """The masks that are the labels, and other maps of the same images.

    All are labels if all are in folders for masks.

    Raises:
        InputError: if it is ambiguous which maps are the labels.
    """
    if all(kind_by_name(tree.parts(mask)) == 'mask' for mask in masks):
        return masks, []
    maps: dict[Role, dict[Path, Path]] = defaultdict(dict)
    for mask in masks:
        if image := _match_mask(names[mask], mask, index):
            maps[role_of(mask, image, tree)].setdefault(image, mask)
    # Roles that have maps of mostly the same images: one of them has the labels.
    competing = {
        role: mask_of
        for role, mask_of in maps.items()
        if any(
            other is not mask_of
            and len(mask_of.keys() & other.keys()) >= MIN_SHARED_IMAGES * len(other)
            for other in maps.values()
        )
    }
    if len(competing) < 2:
        return masks, []
    chosen = choose_labels(competing, findings)
    unused = {mask for role in competing if role != chosen for mask in competing[role].values()}
    return [mask for mask in masks if mask not in unused], [*unused]


def _is_named_mask(path: Path) -> bool:
    stem, _ = stem_and_suffix(str(path).lower().rpartition(os.sep)[2])
    return stem.endswith(MASK_WORDS) and MASK_ENDING.search(stem) is not None


def _names_of_image(mask: Path) -> list[str]:
    return [MASK_ENDING.sub('', mask.stem) + ending for ending in IMAGE_ENDINGS]
