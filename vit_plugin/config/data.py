"""The folders and annotation files of data sets and metrics."""

import inspect
import os
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from mmengine.config import Config, ConfigDict
from mmengine.registry import DATASETS, METRICS

from vit_plugin.arguments import Signature, check, fits
from vit_plugin.errors import ConfigError, needed_by

# Metrics, MMDetection's and ours, that ask for a package only when all images are done.
PACKAGES = {'FasterCocoMetric': 'faster_coco_eval'}


def check_data(field: str, dataset: ConfigDict, scope: str | None) -> None:
    """Raise a ``ConfigError`` if a folder or file of a data set, or of one inside it, is missing.

    Data sets that download their files need none.
    """
    if 'dataset' in dataset:  # a wrapper such as RepeatDataset
        check_data(f'{field}.dataset', dataset['dataset'], scope)
        return
    for i, part in enumerate(dataset.get('datasets', ())):  # ConcatDataset
        check_data(f'{field}.datasets.{i}', part, scope)
    missing = next(_missing(dataset), None)
    if missing and not _downloads(dataset, scope):
        raise ConfigError(
            f'{field}: there is no {missing} in {os.getcwd()}; put or link the data there, '
            f'or give --cfg-options {field}.data_root=FOLDER.'
        )


def with_pipeline(dataset: ConfigDict) -> ConfigDict:
    """The data set's config that has the pipeline: this one, or the one inside its wrappers.

    Raises:
        ConfigError: if none has one, as in a ``ConcatDataset``.
    """
    while 'pipeline' not in dataset:
        if 'dataset' not in dataset:
            raise ConfigError(
                f'The data set {dataset.type!r} has no pipeline of its own; give a plain data '
                'set, or one in a wrapper such as vit_plugin.stratified_subset.'
            )
        dataset = dataset.dataset
    return dataset


def _missing(dataset: Mapping) -> Iterator[str]:
    """The missing folders and annotation file of a data set."""
    root, prefix = dataset.get('data_root') or '', dataset.get('data_prefix') or ''
    for part in prefix.values() if isinstance(prefix, Mapping) else [prefix]:
        folder = os.path.join(root, part) if isinstance(part, str) else ''
        if folder and '://' not in folder and not os.path.isdir(folder):
            yield f'folder {folder!r}'
    file = dataset.get('ann_file')
    if file and '://' not in root + file and not os.path.isfile(os.path.join(root, file)):
        yield f'file {os.path.join(root, file)!r}'


def dataset_class(dataset: Mapping, scope: str | None) -> type | None:
    """The class of a data set's config in the framework's registry, or None."""
    if not isinstance(dataset['type'], str):
        return dataset['type']
    with DATASETS.switch_scope_and_registry(scope) as registry:
        return registry.get(dataset['type'])


def _downloads(dataset: Mapping, scope: str | None) -> bool:
    kind = dataset_class(dataset, scope)
    return (
        kind is not None
        and 'download' in inspect.signature(kind).parameters
        and dataset.get('download', True)
    )


def check_evaluator(field: str, cfg: Config) -> None:
    """Check the arguments of metrics. They read most of them only after the first epoch.

    Raises:
        ConfigError: if an annotation file is missing (``data_root`` is not part of its path), or an
            argument is unknown or of another type than the metric's annotations tell.
        MissingExtraError: if a metric needs a package that is not installed.
    """
    metrics = cfg.get(field) or []
    for i, metric in enumerate([metrics] if isinstance(metrics, Mapping) else metrics):
        name = field if isinstance(metrics, Mapping) else f'{field}.{i}'
        file = metric.get('ann_file')
        if file and '://' not in file and not os.path.isfile(file):
            raise ConfigError(
                f'{name}: there is no file {file!r} in {os.getcwd()}; give --cfg-options '
                f'{name}.ann_file=FILE.'
            )
        with METRICS.switch_scope_and_registry(cfg.get('default_scope')) as registry:
            kind = (
                registry.get(metric['type']) if isinstance(metric['type'], str) else metric['type']
            )
        if kind is not None:
            if package := PACKAGES.get(kind.__name__):
                with needed_by(f'{name} ({kind.__name__})'):
                    import_module(package)
            signature = Signature.of_class(kind)
            check(
                name,
                signature,
                (),
                {
                    key: _as_annotated(value, signature.fields.get(key, Any))
                    for key, value in metric.items()
                    # None is a default, whatever is annotated.
                    if key not in ('type', '_scope_') and value is not None
                },
            )


def _as_annotated(value: Any, annotation: Any) -> Any:
    """A value, or the list that the frameworks expect instead, of a tuple or of a single value."""
    as_list = list(value) if isinstance(value, (list, tuple)) else [value]
    return next((each for each in (value, as_list) if fits(annotation, each)), value)
