"""Check that the folders and files of data sets and metrics exist."""

import os
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module

from mmengine.config import ConfigDict

from vit_plugin.arguments import Signature
from vit_plugin.errors import ConfigError, needed_by

from .annotated_classes import check_annotations

LOADER_SECTIONS = ('train_dataloader', 'val_dataloader', 'test_dataloader')
# Packages that a metric imports only after the last image.
LATE_IMPORTS = {'FasterCocoMetric': 'faster_coco_eval'}


def check_dataset(place: str, dataset: Mapping, dataset_class: Callable) -> None:
    """Check the folders and files of a data set, unless it downloads them, and its annotations.

    Args:
        place: its place in the config.
        dataset: its config.
        dataset_class: its class.

    Raises:
        ConfigError: if a folder or file is missing, or if the annotations do not fit, see
            :func:`~vit_plugin.config.annotated_classes.check_annotations`.
    """
    downloads = 'download' in Signature.of(dataset_class).fields and dataset.get('download', True)
    missing = next(missing_files(dataset), None)
    if missing and not downloads:
        raise ConfigError(
            f'{place}: there is no {missing} in {os.getcwd()}; put or link the data there, or give '
            f'--cfg-options {place}.data_root=FOLDER.'
        )
    check_annotations(place, dataset, dataset_class)


def check_metric(place: str, metric: Mapping, metric_class: Callable) -> None:
    """Check what a metric would need only after the first epoch.

    Args:
        place: its place in the config.
        metric: its config.
        metric_class: its class.

    Raises:
        ConfigError: if an annotation file is missing (``data_root`` is not part of its path).
        MissingExtraError: if it needs a package that is not installed.
    """
    file = metric.get('ann_file')
    if file and '://' not in file and not os.path.isfile(file):
        raise ConfigError(
            f'{place}: there is no file {file!r} in {os.getcwd()}; give --cfg-options '
            f'{place}.ann_file=FILE.'
        )
    if package := LATE_IMPORTS.get(metric_class.__name__):
        with needed_by(f'{place} ({metric_class.__name__})'):
            import_module(package)


def missing_files(dataset: Mapping) -> Iterator[str]:
    """The missing folders and annotation file of a data set, in words."""
    root, prefix = dataset.get('data_root') or '', dataset.get('data_prefix') or ''
    for subfolder in prefix.values() if isinstance(prefix, Mapping) else [prefix]:
        folder = os.path.join(root, subfolder) if isinstance(subfolder, str) else ''
        if folder and '://' not in folder and not os.path.isdir(folder):
            yield f'folder {folder!r}'
    file = dataset.get('ann_file')
    # Some data sets take a list of files.
    path = os.path.join(root, file) if isinstance(file, str) and file else ''
    if path and '://' not in path and not os.path.isfile(path):
        yield f'file {path!r}'


def with_pipeline(dataset: ConfigDict) -> ConfigDict:
    """The config that has the pipeline: that of the data set, or of the one inside its wrappers.

    Raises:
        ConfigError: if none of them has a pipeline, as in a ``ConcatDataset``.
    """
    while 'pipeline' not in dataset:
        if 'dataset' not in dataset:
            raise ConfigError(
                f'The data set {dataset.type!r} has no pipeline of its own; give a plain data '
                'set, or one in a wrapper such as vit_plugin.stratified_subset.'
            )
        dataset = dataset.dataset
    return dataset
