"""Folders with one image and a folder of its masks, one for each object."""

from collections import defaultdict
from pathlib import Path

from anyfolder.errors import UnclearError
from anyfolder.wording import option

from .image_tree import Tree
from .map_sets import kind_by_name

MEAN_MASKS = 2  # number of masks below which one may cover all pixels of the image


def check_masks_of_objects(tree: Tree) -> None:
    """Raise an ``UnclearError`` for ``ID/images/ID.png`` and several ``ID/masks/*.png``."""
    found = defaultdict[Path, dict[str, list[Path]]](lambda: dict(image=[], mask=[]))
    for folders, images in tree.images_in.items():
        if len(folders) > 1 and (kind := kind_by_name(folders[-1:])) in ('image', 'mask'):
            found[images[0].parent.parent][kind] += images
    whole = [one for one in found.values() if len(one['image']) == 1 and one['mask']]
    masks = [mask for one in whole for mask in one['mask']]
    if len(whole) + len(masks) <= len(tree.images) / 2 or len(masks) < MEAN_MASKS * len(whole):
        return
    [image], mask = whole[0]['image'], masks[0]
    raise UnclearError(
        f'{str(image)!r} has several masks such as {str(mask)!r}, which may show one object each; '
        'merge them into one mask with a number for each class, or to detect objects, give '
        f'{option("task", "instance")} and a layout with their class.',
        format='objects',
        images=f'**/{{name}}/{image.parent.name}/*',
        labels=f'**/{{name}}/{mask.parent.name}/*',
        classes={'0': None, '*': 'object'},
    )
