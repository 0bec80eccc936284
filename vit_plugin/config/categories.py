"""The classes that a config names for a file of COCO annotations, compared with that file."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from mmengine.fileio import load

from vit_plugin.errors import ConfigError, first_line
from vit_plugin.suggestions import suggestion


def check_annotations(at: str, dataset: Mapping, kind: Any) -> None:
    """Compare the classes and the pipeline of MMDetection's ``CocoDataset`` with its file.

    The data set leaves out the boxes of a category that is not among the classes, and numbers the
    others in the order of the file, whatever their order in the config. Both are silent.

    Args:
        at: its place in the config.
        dataset: its config.
        kind: its class. If the classes are those of a class of MMDetection, such as COCO's, the
            file is not read, since it may be large.

    Raises:
        ConfigError: if the file cannot be read, if a class is not in it or has another number, or
            if an object has no outline and the pipeline loads masks.
    """
    known = {} if kind.__module__.startswith('mmdet.') else kind.METAINFO
    classes = list({**known, **(dataset.get('metainfo') or {})}.get('classes') or ())
    file = os.path.join(dataset.get('data_root') or '', dataset.get('ann_file') or '')
    if not classes or not file.endswith('.json'):
        return
    try:
        content = load(file, backend_args=dataset.get('backend_args'))
        names = {category['id']: category['name'] for category in content['categories']}
        objects = content['annotations']
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise ConfigError(
            f'{at}.ann_file={file!r} is no file of COCO annotations ({first_line(error)}).'
        ) from error
    _check_classes(at, classes, list(names.values()), file)
    steps = dataset.get('pipeline') or ()
    if any(isinstance(step, Mapping) and step.get('with_mask') for step in steps):
        used = [one for one in objects if names.get(one.get('category_id')) in classes]
        _check_outlines(at, used)


def _check_classes(at: str, classes: Sequence[str], names: Sequence[str], file: str) -> None:
    absent = [name for name in classes if name not in names]
    if absent and not set(names) <= set(classes):
        raise ConfigError(
            f'{at}.metainfo.classes: there is no category {absent[0]!r} in {file!r}; '
            f'{suggestion(absent[0], names, takes="it has")}'
        )
    numbered = [name for name in names if name in classes]
    if numbered != classes[: len(numbered)]:
        raise ConfigError(
            f'{at}.metainfo.classes: MMDetection numbers the categories in the order of {file!r}, '
            f'so that others would get their names; begin with {", ".join(numbered)}.'
        )


def _check_outlines(at: str, objects: Sequence[Mapping[str, Any]]) -> None:
    bare = next((one for one in objects if not one.get('segmentation')), None)
    if bare is not None:
        raise ConfigError(
            f'{at}.ann_file: the annotation {bare.get("id")} has no segmentation, and the pipeline '
            'loads masks (with_mask=True); give the outlines, or leave out with_mask and the mask '
            'head.'
        )
