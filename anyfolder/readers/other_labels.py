"""Find labels of other tasks in a folder that is read for classification."""

from anyfolder.errors import InputError
from anyfolder.wording import option

from .box_formats import formats_of
from .depth_folders import has_depth
from .image_tree import Tree
from .mask_pairs import has_masks


def check_other_labels(tree: Tree) -> None:
    """Raise an ``InputError`` that names the right task if a folder has boxes, masks or depth maps.

    Its folders, such as ``images`` and ``masks``, would be taken for classes.
    """
    if formats := ' and '.join(format.name for format in formats_of(tree)):
        content, task = f'boxes as {formats}', 'detection'
    elif has_depth(tree):
        content, task = 'images and depth maps', 'depth'
    elif has_masks(tree):
        content, task = 'images and masks', 'segmentation'
    else:
        return
    raise InputError(
        f'{str(tree.folder)!r} has {content}; give {option("task", task)}, or for classification a '
        'folder with only class folders.'
    )
