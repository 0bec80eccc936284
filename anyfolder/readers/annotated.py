"""Folders of images with boxes or polygons: their form, their parts and their classes."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from anyfolder.bounded import read_json
from anyfolder.errors import InputError

from .build_listing import BOXES, Draft, build_listing, leave_out
from .class_names import class_name, warn_merged
from .coco import is_coco, read_coco
from .findings import Findings
from .image_lists import box_tables, format_of, read_image_lists
from .image_tree import Tree
from .instances import check_instances
from .labelme import is_labelme, read_labelme
from .listing import Listing
from .name_files import find_names, find_settings
from .records import Annotations, Records
from .split_lists import Lists
from .voc import read_voc, voc_root
from .yolo import is_label, label_files, read_yolo

OF_JSON = (('COCO', is_coco), ('LabelMe', is_labelme))
# Names of classes for regions without one: of LabelMe, VisDrone and KITTI.
IGNORED = ('ignore', 'ignored', 'ignored regions', 'ignored-regions', 'dontcare')
BACKGROUND_SHAPE = '_background_'  # as LabelMe calls it


class Format(NamedTuple):
    """A form of annotations, and how it is read."""

    name: str
    read: Callable[[Tree, Any, Findings], Annotations]
    files: dict[Path, Any]  # that were recognized, with what is in them


def formats_of(tree: Tree, with_tables: bool = False) -> list[Format]:
    """The forms of annotations that a folder has files of.

    Args:
        tree: the files of the folder.
        with_tables: whether tables with boxes count where there is no other form.

    Raises:
        InputError: if a file of JSON, XML or YAML is damaged.
    """
    found: dict[str, dict[Path, Any]] = defaultdict(dict)
    for file in tree.others:
        if file.suffix.lower() == '.json':
            content = json_of(file)
            if name := next(
                (name for name, is_one in OF_JSON if is_one(content)), format_of(content, file)
            ):
                found[name][file] = content
        elif file.suffix.lower() == '.xml' and (root := voc_root(file)) is not None:
            found['Pascal VOC'][file] = root
    labels = label_files(tree)
    settings = find_settings(tree) if labels else None
    if labels and (
        find_names(tree, settings)
        or any('labels' in tree.parts(file) or is_label(file) for file in labels)
    ):
        found['YOLO'] = dict.fromkeys(labels)
    readers: dict[str, Any] = {
        'COCO': read_coco,
        'LabelMe': read_labelme,
        'Pascal VOC': read_voc,
        'YOLO': partial(read_yolo, settings=settings),
    }
    found = found or (box_tables(tree) if with_tables else {})
    return [
        Format(name, readers.get(name, read_image_lists), files)
        for name, files in sorted(found.items())
    ]


def json_of(file: Path) -> Any:
    """The content of a file, without the pixels that LabelMe writes into it."""
    content = read_json(file)
    if isinstance(content, dict):
        content.pop('imageData', None)
    return content


def read_annotated_folder(
    tree: Tree, skip_invalid: bool = False, with_masks: bool = False
) -> Listing:
    """Read a folder of COCO, YOLO, Pascal VOC, LabelMe or lists, wherever in it the files are.

    Folders and files that are named so are parts of the data set, see
    :mod:`~anyfolder.readers.splits`. Without images to validate, a tenth of those
    to train on is held out, the same ones each time.

    Args:
        tree: the files of the folder.
        skip_invalid: whether boxes and images that cannot be right are left out, rather than an
            error.
        with_masks: whether each object must have a polygon.

    Raises:
        InputError: if the folder has none of these forms or several, if a file cannot be read, if
            boxes or sizes do not fit the images, if there are no boxes, or if a class has none to
            train on.
    """
    forms = formats_of(tree, with_tables=True)
    if not forms:
        first = [str(file.relative_to(tree.folder)) for file in tree.others[:3]]
        others = f', and of another form {" and ".join(first)}' if first else ''
        raise InputError(
            f'--data: {str(tree.folder)!r} has no boxes: neither Annotations/*.xml as Pascal VOC, '
            'nor a .json of COCO, LabelMe, CreateML or BDD100K, nor a table with xmin, ymin, xmax '
            'and ymax, nor labels/*.txt as YOLO with the names of the images'
            f'{others}; put the boxes there, or leave out --task for a folder of classes.'
        )
    return read_format(tree, forms, skip_invalid, with_masks)


def read_format(
    tree: Tree,
    forms: Sequence[Format],
    skip_invalid: bool = False,
    with_masks: bool = False,
    with_background: bool = False,
) -> Listing:
    """Read a folder of one form, see :func:`read_annotated_folder`.

    Shapes of the background are no objects, and are kept for masks alone.
    """
    if len(forms) > 1:
        kinds = ' and '.join(form.name for form in forms)
        firsts = ' and '.join(repr(str(next(iter(form.files)))) for form in forms)
        raise InputError(
            f'--data: {str(tree.folder)!r} has boxes as {kinds}, in {firsts}; keep one of them.'
        )
    form, findings = forms[0], Findings(skip_invalid)
    records, names, used, is_divided = form.read(tree, form.files, findings)
    names = _normalize_names(records, names, findings)
    if not with_background:
        what = f'shapes of {BACKGROUND_SHAPE} left out, which are no objects'
        leave_out(records, what, lambda found: found.name == BACKGROUND_SHAPE, findings)

    def compare(records: Records) -> Records:
        check_instances(records, findings, with_masks)
        if with_masks:
            _check_polygons(records, findings)
        empty = (record.path for record in records if not record.instances)
        findings.warn_all('images without an object', empty)
        return records

    lists = Lists() if is_divided else None
    draft = Draft(BOXES, form.name, tree, records, names, [*form.files, *used], lists=lists)
    return build_listing(draft, findings, compare)


def _normalize_names(records: Records, names: Sequence[str], findings: Findings) -> Sequence[str]:
    """Bring the names of all objects, and those of the classes, into their normal form.

    Objects of no class are rejected, and those of one such as ``__ignore__`` are ignored.
    """
    instances = [found for record in records for found in record.instances]
    written = [*names, *(found.name for found in instances)]
    warn_merged(written, findings)
    normal = {name: class_name(name) for name in {*written}}
    for found in instances:
        found.name = normal[found.name]
        if found.name.strip('_').casefold() in IGNORED:
            what = 'objects of a class for what is to be ignored, whatever it is'
            findings.warn(what, f'{found.name!r} of {found.origin}')
            found.name, found.crowd = '', True
        elif not found.name:
            findings.reject('objects have no class', 'name it', found.origin)
    for record in records:
        record.instances = [one for one in record.instances if one.name or one.crowd]
    return [normal[name] for name in names]


def _check_polygons(records: Records, findings: Findings) -> None:
    for record in records:
        for found in record.instances:
            if not found.segmentation:
                findings.reject(
                    'objects have a box and no polygon',
                    'draw one, or give --task detection',
                    found.origin,
                )
        record.instances = [found for found in record.instances if found.segmentation]
