"""Read a folder that has a layout: find the layout, and choose the one for the task."""

from dataclasses import replace
from pathlib import Path

from anyfolder.errors import InputError
from anyfolder.readers.depth_range import DepthRange, check_scale
from anyfolder.readers.image_tree import Tree
from anyfolder.readers.listing import Listing
from anyfolder.wording import option

from .known_layouts import FolderLayouts, layouts_of_folder
from .layout import Layout
from .layout_files import matching
from .read_layout import read_by_layout

LABELS = {  # the kind of labels by task, for messages
    'classification': 'classes of images',
    'detection': 'boxes',
    'instance': 'outlines of objects',
    'segmentation': 'masks',
    'panoptic': 'masks of things and stuff',
    'depth': 'depth maps',
}


def read_laid_out(
    tree: Tree,
    folder: str | Path,
    task: str,
    layout: str | Path | None = None,
    skip_invalid: bool = False,
    check_all: bool = False,
    depth_scale: float | None = None,
) -> tuple[Listing, DepthRange | None] | None:
    """Read a folder by a layout: the given one, its own, or that of a known public data set.

    Args:
        tree: the files of the folder.
        folder: the folder of the data.
        task: what the labels are for.
        layout: a layout file. Default: ``anyfolder.yaml`` in the folder, or a known layout.
        skip_invalid: whether invalid labels are left out instead of raising an error.
        check_all: whether all depth maps are read, rather than a sample.
        depth_scale: meters per unit in depth maps, overriding the layout.

    Returns:
        The listing of the folder, and the range of depth maps (None for other tasks). None instead
        of both if there is no layout, so the folder must be read by its own structure.

    Raises:
        InputError: if the layout is invalid, has no labels for this task, or does not fit the
            folder, or if the scale is not above 0.
    """
    check_scale(depth_scale)
    found = _find_layouts(folder, layout)
    if found is None:
        return None
    chosen = _choose_layout(found, tree, task)
    if depth_scale is not None:
        chosen = replace(chosen, meters=depth_scale)
    return read_by_layout(chosen, found.folder, tree, task, skip_invalid, check_all)


def task_by_layout(tree: Tree, folder: str | Path, layout: str | Path | None = None) -> str | None:
    """The first task of a folder's layout; if it has several, of the first whose labels exist.

    None if the folder has no layout.

    Raises:
        InputError: if the layout is invalid.
    """
    found = _find_layouts(folder, layout)
    if found is None:
        return None
    files = [*tree.others, *tree.images]
    with_labels = (
        layout for layout in found.layouts if any(matching(found.folder, files, layout.labels))
    )
    chosen = next(with_labels, found.layouts[0])
    return next(iter(chosen.task or chosen.tasks), None)


def _find_layouts(folder: str | Path, layout: str | Path | None) -> FolderLayouts | None:
    """The layouts of a folder, see :func:`read_laid_out`."""
    if layout is None:
        return layouts_of_folder(Path(folder))
    if not Path(layout).is_file():
        raise InputError(f'there is no file {str(layout)!r}.', option='layout')
    return layouts_of_folder(Path(folder), Path(layout))


def _choose_layout(found: FolderLayouts, tree: Tree, task: str) -> Layout:
    """The layout for a task; if there are several, the first whose labels exist."""
    candidates = [layout for layout in found.layouts if task in (layout.task or layout.tasks)]
    if not candidates:
        possible = dict.fromkeys(
            name for layout in found.layouts for name in layout.task or layout.tasks
        )
        labels = ' and '.join(LABELS[name] for name in possible)
        remedy = ' or '.join(option('task', name) for name in possible)
        raise InputError(
            f'{str(found.folder)!r} is {found.layouts[0].title}, whose labels are {labels}, not '
            f'for {option("task", task)}; give {remedy}.'
        )
    files = [*tree.others, *tree.images]
    for layout in candidates[:-1]:
        if next(matching(found.folder, files, layout.labels), None):
            return layout
    return candidates[-1]
