"""Compare the classes that a config names with annotation files of COCO or Pascal VOC."""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from anyfolder.bounded import read_json, read_xml
from anyfolder.text import read_lines
from vit_plugin.errors import ConfigError, rejecting
from vit_plugin.suggestions import suggestion

from .metainfo import stated_metainfo

UNREADABLE = (OSError, ValueError, LookupError, TypeError, AttributeError)


def check_annotations(place: str, dataset: Mapping, dataset_class: Any) -> None:
    """Compare the classes and the pipeline of a data set of MMDetection with its annotations.

    MMDetection silently drops boxes whose class is not listed, and ``CocoDataset`` numbers the
    classes in the order of the file, whatever their order in the config.

    Args:
        place: its place in the config.
        dataset: its config.
        dataset_class: its class. No file is read if the class names are those of an MMDetection
            class, such as COCO's: the file may be large, or on another machine.

    Raises:
        ConfigError: if the annotations cannot be read, if the classes are a string that is no file,
            if the annotations lack a class and have others instead, if a class would get another
            number, or if an object has no outline and the pipeline loads masks.
    """
    bases = [base.__name__ for base in getattr(dataset_class, '__mro__', ())]
    check = next((CLASS_NAME_CHECKS[base] for base in bases if base in CLASS_NAME_CHECKS), None)
    if check is None or not dataset.get('ann_file'):
        return
    is_of_framework = dataset_class.__module__.startswith('mmdet.')
    metainfo = stated_metainfo(dataset, {} if is_of_framework else dataset_class.METAINFO)
    names = metainfo.get('classes') or ()
    file = os.path.join(dataset.get('data_root') or '', dataset['ann_file'])
    if not names or '://' in file:
        return
    if isinstance(names, str):
        raise ConfigError(
            f'{place}.metainfo.classes={names!r} is no text file of names; give one, or a list '
            'of the names.'
        )
    classes = list(names)
    with rejecting(
        f'{place}.ann_file={file!r}, or a file that it names, cannot be read as annotations',
        'correct it, or take the data set class for its format',
        UNREADABLE,
    ):
        check(place, dataset, file, classes)


def _check_coco(place: str, dataset: Mapping, file: str, classes: Sequence[str]) -> None:
    """Compare classes with a COCO file: their names, their order, and outlines for masks."""
    content = read_json(file)
    names = {category['id']: category['name'] for category in content['categories']}
    _check_known(place, classes, names.values(), file)
    numbered = [name for name in names.values() if name in classes]
    if numbered != classes[: len(numbered)]:
        raise ConfigError(
            f'{place}.metainfo.classes: MMDetection numbers the categories in the order of '
            f'{file!r}, so they would get wrong names; begin with {", ".join(numbered)}, or, for a '
            'trained model, list all of its classes as categories of the file, in their order.'
        )
    steps = dataset.get('pipeline') or ()
    if not any(isinstance(step, Mapping) and step.get('with_mask') for step in steps):
        return
    for annotation in content['annotations']:
        category = names.get(annotation.get('category_id'))
        if category in classes and not annotation.get('segmentation'):
            raise ConfigError(
                f'{place}.ann_file: the annotation {annotation.get("id")} has no segmentation, but '
                'the pipeline loads masks (with_mask=True); give the outlines, or leave out '
                'with_mask and the mask head.'
            )


def _check_voc(place: str, dataset: Mapping, file: str, classes: Sequence[str]) -> None:
    """Compare classes with the XML files of the images that a Pascal VOC list names."""
    prefix = (dataset.get('data_prefix') or {}).get('sub_data_root', '')
    root = os.path.join(dataset.get('data_root') or '', prefix)
    folder = os.path.join(root, dataset.get('ann_subdir', 'Annotations'))
    names: set[str] = set()
    for image in read_lines(file):
        content = read_xml(Path(folder, f'{image}.xml'))
        names |= {node.text or '' for node in content.iterfind('object/name')}
    _check_known(place, classes, names, folder)


CLASS_NAME_CHECKS: dict[str, Callable[[str, Mapping, str, Sequence[str]], None]] = {
    'CocoDataset': _check_coco,
    'XMLDataset': _check_voc,
}


def _check_known(place: str, classes: Sequence[str], names: Collection[str], where: str) -> None:
    """Reject a class that is not among ``names`` if some of these are not among the classes.

    MMDetection would silently leave out the objects of these names. If there are none, a class
    without objects is accepted.
    """
    absent = [name for name in classes if name not in names]
    if absent and not set(names) <= set(classes):
        raise ConfigError(
            f'{place}.metainfo.classes: there is no {absent[0]!r} in {where!r}; '
            f'{suggestion(absent[0], sorted(names), list_start="it has")}'
        )
