"""Read a folder for a task, or infer its task: :func:`anyfolder.read`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from .dataset import Dataset, as_dataset
from .errors import InputError, is_out_of_memory, naming
from .garbage import without_collection
from .layouts.answers import answering
from .layouts.find_layout import read_laid_out, task_by_layout
from .readers.box_folders import read_annotated_folder
from .readers.box_formats import formats_of
from .readers.class_folders import read_class_folders
from .readers.depth_folders import has_depth, read_depth_folder
from .readers.depth_range import DepthRange
from .readers.image_tree import Tree
from .readers.listing import Listing
from .readers.mask_folders import read_mask_folder
from .readers.mask_pairs import has_masks
from .readers.panoptic import is_panoptic, read_panoptic_folder
from .readers.probe_cache import ProbeCache
from .wording import option


class Options(NamedTuple):
    """The options for reading a folder, see :func:`read`; ``source`` is the folder as given."""

    skip_invalid: bool
    depth_scale: float | None
    decode_all: bool
    source: Path


Reading = tuple[Listing, DepthRange | None]  # the range is None for tasks other than depth


def _read_boxes(tree: Tree, options: Options, with_masks: bool = False) -> Reading:
    return read_annotated_folder(tree, options.skip_invalid, with_masks), None


# The reader of labels for each task, for folders without a layout.
TASKS: dict[str, Callable[[Tree, Options], Reading]] = {
    'classification': lambda tree, options: (
        read_class_folders(tree, skip_invalid=options.skip_invalid),
        None,
    ),
    'detection': _read_boxes,
    'instance': partial(_read_boxes, with_masks=True),
    'segmentation': lambda tree, options: (read_mask_folder(tree, options.skip_invalid), None),
    'panoptic': lambda tree, options: (read_panoptic_folder(tree, options.skip_invalid), None),
    'depth': lambda tree, options: read_depth_folder(
        tree, options.depth_scale, options.skip_invalid, options.decode_all
    ),
}


def read(
    folder: str | Path,
    task: str | None = None,
    *,
    skip_invalid: bool = False,
    depth_scale: float | None = None,
    decode_all: bool = False,
    layout: str | Path | None = None,
) -> Dataset:
    """Read a folder of labeled images in any known format, and check it against the pixels.

    Args:
        folder: the folder of the data, which is only read.
        task: what the labels are for, a key of :data:`TASKS`. Default: inferred from the folder.
        skip_invalid: leave out invalid boxes, masks and images instead of raising an error.
        depth_scale: meters per unit in depth maps. Default: by the format of the maps.
        decode_all: decode all images instead of 100 images and the headers of the others.
        layout: a file that describes the folder. Default: its ``anyfolder.yaml``, or the layout of
            a known public data set.

    Raises:
        InputError: if the folder is not recognized or has errors, in one sentence with the file and
            the remedy.
        MissingExtraError: if a package for a file format is not installed.
    """
    if task is not None and task not in TASKS:
        raise InputError(f'{option("task", task)} is not one of {", ".join(TASKS)}.')
    options = Options(skip_invalid, depth_scale, decode_all, Path(folder))
    with naming(str(folder)), _explaining_file_errors(), without_collection():
        tree = Tree(folder, ProbeCache(str(folder), decode_all=decode_all))
        chosen = task or task_by_layout(tree, folder, layout)
        if chosen is None:
            chosen, (listing, depth_range) = _infer_task(tree, options)
        else:
            listing, depth_range = read_laid_out(
                tree, folder, chosen, layout, skip_invalid, decode_all, depth_scale
            ) or _read_as(chosen, tree, options)
        if depth_scale is not None and chosen != 'depth':
            raise InputError(
                f'{option("depth_scale", depth_scale)} is only for depth, but the folder is read '
                f'for {option("task", chosen)}; leave it out, or give {option("task", "depth")}.'
            )
        scale = depth_range.scale if depth_range else 1.0
        return as_dataset(chosen, Path(folder), listing, scale)


@contextmanager
def _explaining_file_errors() -> Iterator[None]:
    """Turn the error of a file or folder without permission to read it into one sentence."""
    try:
        yield
    except OSError as error:
        if error.filename is None or is_out_of_memory(error):
            raise
        raise InputError(
            f'{str(error.filename)!r} cannot be read ({error.strerror}); make it readable, or '
            'remove it.'
        ) from error


def _infer_task(tree: Tree, options: Options) -> tuple[str, Reading]:
    """Infer the task from the files of a folder, and read the folder for it.

    Objects are read as instances if all of them have polygons, otherwise as boxes.

    Raises:
        InputError: if the folder cannot be read for the inferred task.
    """
    files = (file for file in tree.others if file.suffix.lower() == '.json')
    if any(is_panoptic(tree.contents.json(file)) for file in files):
        task = 'panoptic'
    elif formats_of(tree, with_tables=True):
        try:
            instances = TASKS['instance'](tree, options)
        except InputError:
            return 'detection', _read_as('detection', tree, options)
        if options.skip_invalid:  # objects without a polygon were left out
            boxes = _read_as('detection', tree, options)
            if _count_objects(boxes[0]) > _count_objects(instances[0]):
                return 'detection', boxes
        return 'instance', instances
    elif has_depth(tree):
        task = 'depth'
    elif has_masks(tree):
        task = 'segmentation'
    else:
        task = 'classification'
    return task, _read_as(task, tree, options)


def _read_as(task: str, tree: Tree, options: Options) -> Reading:
    """Read a folder without a layout; an error on an ambiguous folder proposes a layout."""
    with answering(options.source, task):
        return TASKS[task](tree, options)


def _count_objects(listing: Listing) -> int:
    return sum(len(record.instances) for part in listing.parts.values() for record in part)
