"""Reject images with a folder of masks each, one for each object: they suit two tasks."""

from collections import defaultdict
from pathlib import Path

from anyfolder.errors import UnclearError
from anyfolder.wording import option

from .image_tree import Tree
from .map_sets import kind_by_name

MIN_MEAN_MASKS = 2  # masks per image on average; a single one may have all objects


def check_masks_of_objects(tree: Tree) -> None:
    """Raise an ``UnclearError`` for ``ID/images/ID.png`` and several ``ID/masks/*.png``."""
    files_in = defaultdict[Path, dict[str, list[Path]]](lambda: dict(image=[], mask=[]))
    for folders, images in tree.images_in.items():
        if len(folders) > 1 and (kind := kind_by_name(folders[-1:])) in ('image', 'mask'):
            files_in[images[0].parent.parent][kind] += images
    pairs = [files for files in files_in.values() if len(files['image']) == 1 and files['mask']]
    masks = [mask for files in pairs for mask in files['mask']]
    are_most_files = len(pairs) + len(masks) > len(tree.images) / 2
    if not are_most_files or len(masks) < MIN_MEAN_MASKS * len(pairs):
        return
    [image], mask = pairs[0]['image'], masks[0]
    raise UnclearError(
        f'{str(image)!r} has several masks such as {str(mask)!r}, which may show one object each; '
        'merge them into one mask with a number for each class, or to detect objects, give '
        f'{option("task", "instance")} and a layout with their class.',
        format='objects',
        images=f'**/{{name}}/{image.parent.name}/*',
        labels=f'**/{{name}}/{mask.parent.name}/*',
        classes={'0': None, '*': 'object'},
    )
