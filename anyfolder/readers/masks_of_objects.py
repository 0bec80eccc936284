"""Folders with one image and a folder of its masks, one for each object."""

from collections import defaultdict
from pathlib import Path

from anyfolder.errors import UnclearError
from anyfolder.wording import option

from .image_tree import Tree
from .map_sets import kind_by_name

MIN_MEAN_MASKS = 2  # masks per image on average; a single one may have all objects


def check_masks_of_objects(tree: Tree) -> None:
    """Raise an ``UnclearError`` for ``ID/images/ID.png`` and several ``ID/masks/*.png``."""
    images_in, masks_in = defaultdict[Path, list[Path]](list), defaultdict[Path, list[Path]](list)
    for folders, images in tree.images_in.items():
        if len(folders) > 1:
            kind = kind_by_name(folders[-1:])
            if kind == 'image':
                images_in[images[0].parent.parent] += images
            elif kind == 'mask':
                masks_in[images[0].parent.parent] += images
    parents = [parent for parent in images_in if len(images_in[parent]) == 1 and masks_in[parent]]
    masks = [mask for parent in parents for mask in masks_in[parent]]
    are_most_files = len(parents) + len(masks) > len(tree.images) / 2
    if not are_most_files or len(masks) < MIN_MEAN_MASKS * len(parents):
        return
    [image], mask = images_in[parents[0]], masks[0]
    raise UnclearError(
        f'{str(image)!r} has several masks such as {str(mask)!r}, which may show one object each; '
        'merge them into one mask with a number for each class, or to detect objects, give '
        f'{option("task", "instance")} and a layout with their class.',
        format='objects',
        images=f'**/{{name}}/{image.parent.name}/*',
        labels=f'**/{{name}}/{mask.parent.name}/*',
        classes={'0': None, '*': 'object'},
    )
