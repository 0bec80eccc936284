"""Read a folder for a task, or find out which task it is for."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from .dataset import Dataset, as_dataset
from .errors import InputError, naming
from .readers.box_folders import read_annotated_folder
from .readers.box_formats import formats_of
from .readers.class_folders import read_class_folders
from .readers.depth_folders import read_depth_folder
from .readers.image_tree import Tree
from .readers.listing import Listing
from .readers.mask_folders import read_mask_folder
from .readers.mask_pairs import has_masks
from .readers.panoptic import is_panoptic, read_panoptic_folder
from .readers.probe_cache import ProbeCache
from .wording import option


class Options(NamedTuple):
    """How a folder is read, see :func:`read`."""

    skip_invalid: bool = False
    depth_scale: float | None = None
    decode_all: bool = False


Found = tuple[Listing, float]  # and meters of a value of 1 in maps of depth


def _read_depth(tree: Tree, options: Options) -> Found:
    listing, depths = read_depth_folder(
        tree, options.depth_scale, options.skip_invalid, options.decode_all
    )
    return listing, depths.scale


# The task -> how its labels are read.
TASKS: dict[str, Callable[[Tree, Options], Found]] = {
    'classification': lambda tree, options: (
        read_class_folders(tree, skip_invalid=options.skip_invalid),
        1.0,
    ),
    'detection': lambda tree, options: (read_annotated_folder(tree, options.skip_invalid), 1.0),
    'instance': lambda tree, options: (
        read_annotated_folder(tree, options.skip_invalid, with_masks=True),
        1.0,
    ),
    'segmentation': lambda tree, options: (read_mask_folder(tree, options.skip_invalid), 1.0),
    'panoptic': lambda tree, options: (read_panoptic_folder(tree, options.skip_invalid), 1.0),
    'depth': _read_depth,
}


def read(
    folder: str | Path,
    task: str | None = None,
    *,
    skip_invalid: bool = False,
    depth_scale: float | None = None,
    decode_all: bool = False,
) -> Dataset:
    """Read a folder of labeled images, whatever its format, and check it against the pixels.

    Args:
        folder: of the data, which is only read.
        task: what its labels are for, a key of :data:`TASKS`. Default: what the folder is.
        skip_invalid: leave out boxes, masks and images that cannot be right, rather than raise.
        depth_scale: meters of a value of 1 in maps of depth. Default: by the form of the maps.
        decode_all: decode all images, rather than the headers of all and 100 whole ones.

    Raises:
        InputError: in one sentence, if the folder cannot be understood, or has what cannot be
            right; with the file and the remedy.
        MissingExtraError: if a package for a kind of file is not installed.
    """
    if task is not None and task not in TASKS:
        raise InputError(f'{option("task", task)} is not one of {", ".join(TASKS)}.')
    probes = ProbeCache(str(folder), decode_all=decode_all)
    options = Options(skip_invalid, depth_scale, decode_all)
    with naming(str(folder)):
        tree = Tree(folder, probes)
        found = task or task_of(tree, depth_scale)
        listing, scale = TASKS[found](tree, options)
    return as_dataset(found, listing, scale)


def task_of(tree: Tree, depth_scale: float | None = None) -> str:
    """The task that the labels of a folder are for.

    Objects are instances where each has a polygon, and boxes otherwise.

    Raises:
        InputError: if a file of annotations is damaged.
    """
    files = [file for file in tree.others if file.suffix.lower() == '.json']
    if any(is_panoptic(tree.contents.json(file)) for file in files):
        return 'panoptic'
    if formats_of(tree, with_tables=True):
        return 'instance' if _is_read(tree, 'instance') else 'detection'
    if any('depth' in part.casefold() for folders in tree.images_in for part in folders) and (
        _is_read(tree, 'depth', Options(depth_scale=depth_scale))
    ):
        return 'depth'
    return 'segmentation' if has_masks(tree) else 'classification'


def _is_read(tree: Tree, task: str, options: Options | None = None) -> bool:
    """True if a folder can be read for this task."""
    try:
        TASKS[task](tree, options or Options())
    except InputError:
        return False
    return True
