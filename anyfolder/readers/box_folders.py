"""Folders of images with boxes or polygons, in any format and with files anywhere."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from anyfolder.errors import UnclearError
from anyfolder.wording import option

from .annotated_images import read_images
from .box_formats import FormatFiles, formats_of
from .build_listing import BOXES, Draft, build_listing, leave_out
from .class_names import class_name, warn_merged
from .findings import Findings
from .format_folder import (
    FolderFacts,
    prepare_coco,
    prepare_open_images,
    prepare_supervisely,
)
from .image_tree import Tree
from .listing import Listing
from .masks_of_objects import check_masks_of_objects
from .object_checks import check_instances
from .records import Records
from .split_lists import Lists
from .voc_folder import prepare_voc
from .yolo_folder import prepare_yolo

# Class names that mean 'ignore this region' in LabelMe, VisDrone and KITTI; compared without outer
# underscores.
IGNORED = ('ignore', 'ignored', 'ignored regions', 'ignored-regions', 'dontcare')
BACKGROUND_SHAPE = '_background_'  # LabelMe's name
# For formats whose folders state more than their annotation files (class order, splits): a function
# that finds it. Other formats are read from the files alone.
PREPARE: dict[str, Callable[[Tree, Mapping[Path, Any], Findings], FolderFacts]] = {
    'COCO': prepare_coco,
    'Open Images': prepare_open_images,
    'Pascal VOC': prepare_voc,
    'Supervisely': prepare_supervisely,
    'YOLO': prepare_yolo,
}


def read_annotated_folder(
    tree: Tree, skip_invalid: bool = False, with_masks: bool = False
) -> Listing:
    """Read a folder with files of one of :data:`~.formats.table.FORMATS`, wherever they are.

    Folders and files named after splits, such as ``train``, are splits of the data set, see
    :mod:`~anyfolder.readers.splits`. Without validation images, a tenth of the training images is
    held out, always the same ones.

    Args:
        tree: the files of the folder.
        skip_invalid: whether invalid boxes and images are left out instead of raising an error.
        with_masks: whether each object must have a polygon.

    Raises:
        InputError: if the folder has none or several of these formats, if a file cannot be read, if
            boxes or sizes do not fit the images, if there are no boxes, or if a class has no box to
            train on.
    """
    formats = formats_of(tree, with_tables=True)
    if not formats:
        check_masks_of_objects(tree)
        first = [str(file.relative_to(tree.folder)) for file in tree.others[:3]]
        others = f', but files of another form: {" and ".join(first)}' if first else ''
        raise UnclearError(
            f'{str(tree.folder)!r} has no boxes: no Annotations/*.xml as in Pascal VOC, '
            'no .json of COCO, LabelMe, CreateML or BDD100K, no table with xmin, ymin, xmax '
            'and ymax, and no labels/*.txt as in YOLO with the names of the images'
            f'{others}; put the boxes there, or give {option("task", "classification")} for '
            'folders of classes.',
            format='table',  # keywords pre-fill a layout file (UnclearError)
        )
    return read_format(tree, formats, skip_invalid, with_masks)


def read_format(
    tree: Tree,
    formats: Sequence[FormatFiles],
    skip_invalid: bool = False,
    with_masks: bool = False,
    with_background: bool = False,
) -> Listing:
    """Read a folder of one format, see :func:`read_annotated_folder`.

    Args:
        tree, skip_invalid, with_masks: see :func:`read_annotated_folder`.
        formats: the formats found in the folder, each with its files. There must be one.
        with_background: whether LabelMe's background shapes are kept, to be drawn in masks. They
            are not objects.

    Raises:
        InputError: see :func:`read_annotated_folder`.
    """
    if len(formats) > 1:
        names_of_formats = ' and '.join(one.name for one in formats)
        first_files = ' and '.join(repr(str(next(iter(one.files)))) for one in formats)
        raise UnclearError(
            f'{str(tree.folder)!r} has boxes as {names_of_formats}, in {first_files}; keep '
            'one of them.',
            labels=[*formats[0].files],  # keywords pre-fill a layout file (UnclearError)
        )
    [(format, files)] = formats
    findings = Findings(skip_invalid)
    prepare = PREPARE.get(format.name)
    folder = prepare(tree, files, findings) if prepare else FolderFacts(files)
    records, names = read_images(tree, format, folder, findings)
    names = _normalize_names(records, names, findings)
    if not with_background:
        what = f'{BACKGROUND_SHAPE} shapes left out, which are not objects'
        leave_out(records, what, lambda instance: instance.name == BACKGROUND_SHAPE, findings)

    def compare(records: Records) -> Records:  # with the pixels, see `build_listing`
        check_instances(records, findings, with_masks)
        empty = (record.path for record in records if not record.instances)
        findings.warn_all('images without an object', empty)
        return records

    # None: read list files such as test.txt; an empty Lists: the format has its own.
    lists = None if folder.splits is None else Lists()
    used = [*files, *folder.used_files]
    draft = Draft(BOXES, format.name, tree, records, names=names, used_files=used, lists=lists)
    return build_listing(draft, findings, compare)


def _normalize_names(records: Records, names: Sequence[str], findings: Findings) -> list[str]:
    """Normalize the class names, and those of all objects; return the former.

    Objects without a class are rejected and removed. Those of classes such as ``__ignore__`` lose
    their class, and are marked as crowd.
    """
    instances = [instance for record in records for instance in record.instances]
    written = [*names, *(instance.name for instance in instances)]
    warn_merged(written, findings)
    normal = {name: class_name(name) for name in {*written}}
    for instance in instances:
        instance.name = normal[instance.name]
        if instance.name.strip('_').casefold() in IGNORED:
            what = 'objects of a class for ignored regions'
            findings.warn(what, f'{instance.name!r} of {instance.origin}')
            instance.name, instance.crowd = '', True
        elif not instance.name:
            findings.reject('objects have no class', 'name it', instance.origin)
    for record in records:
        record.instances = [
            instance for instance in record.instances if instance.name or instance.crowd
        ]
    return [normal[name] for name in names]
