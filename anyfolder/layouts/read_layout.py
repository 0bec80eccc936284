"""Read a folder by its layout: choose the reader for the task."""

from pathlib import Path

from anyfolder.readers.depth_folders import DepthRange
from anyfolder.readers.findings import Findings
from anyfolder.readers.image_tree import Tree
from anyfolder.readers.listing import Listing
from anyfolder.readers.panoptic import read_panoptic_folder

from .laid_out_folder import LaidOutFolder
from .layout import Layout
from .layout_boxes import read_boxes
from .layout_classes import read_classes
from .layout_maps import read_depth, read_masks


def read_by_layout(
    layout: Layout,
    folder: Path,
    tree: Tree,
    task: str,
    skip_invalid: bool = False,
    check_all: bool = False,
) -> tuple[Listing, DepthRange | None]:
    """Read a folder by its layout.

    Args:
        layout: a layout whose labels support the task.
        folder: the folder that the layout's patterns are relative to.
        tree: the files of the folder.
        task: one of :attr:`Layout.tasks`.
        skip_invalid: whether invalid labels are left out instead of raising an error.
        check_all: whether all depth maps are read instead of a sample.

    Returns:
        The images with their labels, and the range of depth maps; None for other tasks.

    Raises:
        InputError: if the layout names missing files, values or splits, or if labels do not fit the
            images.
    """
    laid_out = LaidOutFolder(layout, folder, tree, Findings(skip_invalid))
    if task == 'classification':
        return read_classes(laid_out), None
    if task == 'segmentation':
        return read_masks(laid_out), None
    if task == 'depth':
        return read_depth(laid_out, check_all)
    if task == 'panoptic':
        images = list(laid_out.images.of_path)
        files = [file.path for file in laid_out.labels]
        listing = read_panoptic_folder(tree.limited_to(images, files), skip_invalid)
        if layout.note:
            listing.findings.warn(f'read as {layout.title} unpacks', layout.note)
        return listing, None
    return read_boxes(laid_out, with_masks=task == 'instance'), None
