"""What can be found wrong with a config in a second, and would else fail after minutes."""

import inspect
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence

import torch
from mmengine.config import Config, ConfigDict
from mmengine.registry import DATASETS, MODELS

from vit_plugin.errors import ConfigError

LOADERS = ('train_dataloader', 'val_dataloader', 'test_dataloader')
BACKBONE = 'vit_plugin.VisionTransformer'


def check_config(cfg: Config, loaders: Sequence[str] = LOADERS) -> None:
    """Find out early what would fail late.

    Args:
        cfg: the config.
        loaders: the data loaders that will be used.

    Raises:
        ConfigError: if the work directory cannot be written, the checkpoint, a data folder or an annotation file is
            missing, or the neck or head does not fit the backbone.
    """
    _check_work_dir(cfg.work_dir)
    check_checkpoint(cfg.get('load_from'))
    for name in loaders:
        if cfg.get(name):
            _check_data(f'{name}.dataset', cfg[name]['dataset'], cfg.get('default_scope'))
            _check_evaluator(name.replace('dataloader', 'evaluator'), cfg)
    check_channels(cfg.model)


def _check_work_dir(work_dir: str) -> None:
    try:
        os.makedirs(work_dir, exist_ok=True)
        with tempfile.TemporaryFile(dir=work_dir):
            pass
    except OSError as error:
        raise ConfigError(f'work_dir {work_dir!r} cannot be written ({error.strerror}); '
                          'give another with --work-dir.') from error


def check_checkpoint(path: str | None) -> None:
    """Raise a ``ConfigError`` if the path, where it is no address, is no file."""
    if path and '://' not in path and not os.path.isfile(path):
        raise ConfigError(f'There is no checkpoint file {path!r}.')


def _check_data(field: str, dataset: ConfigDict, scope: str | None) -> None:
    if 'dataset' in dataset:  # a wrapper such as RepeatDataset
        return _check_data(f'{field}.dataset', dataset['dataset'], scope)
    for i, part in enumerate(dataset.get('datasets', ())):  # ConcatDataset
        _check_data(f'{field}.datasets.{i}', part, scope)
    missing = next(_missing(dataset), None)
    if missing and not _downloads(dataset, scope):
        raise ConfigError(f'{field}: there is no {missing} in {os.getcwd()}; put or link the data there, '
                          f'or give --cfg-options {field}.data_root=FOLDER.')


def _missing(dataset: Mapping) -> Iterator[str]:
    """The folders and the annotation file of a data set that are not there."""
    root, prefix = dataset.get('data_root') or '', dataset.get('data_prefix') or ''
    for part in prefix.values() if isinstance(prefix, Mapping) else [prefix]:
        folder = os.path.join(root, part) if isinstance(part, str) else ''
        if folder and '://' not in folder and not os.path.isdir(folder):
            yield f'folder {folder!r}'
    file = dataset.get('ann_file')
    if file and '://' not in root + file and not os.path.isfile(os.path.join(root, file)):
        yield f'file {os.path.join(root, file)!r}'


def dataset_class(dataset: Mapping, scope: str | None) -> type | None:
    """The class of a data set's config, in the registry of the host; None if it has no such class."""
    if not isinstance(dataset['type'], str):
        return dataset['type']
    with DATASETS.switch_scope_and_registry(scope) as registry:
        return registry.get(dataset['type'])


def _downloads(dataset: Mapping, scope: str | None) -> bool:
    kind = dataset_class(dataset, scope)
    return kind is not None and 'download' in inspect.signature(kind).parameters and dataset.get('download', True)


def _check_evaluator(field: str, cfg: Config) -> None:
    """A metric that reads annotations itself has a path of its own, which ``data_root`` does not reach."""
    metrics = cfg.get(field) or []
    for i, metric in enumerate([metrics] if isinstance(metrics, Mapping) else metrics):
        file = metric.get('ann_file')
        if file and '://' not in file and not os.path.isfile(file):
            name = field if isinstance(metrics, Mapping) else f'{field}.{i}'
            raise ConfigError(f'{name}: there is no file {file!r} in {os.getcwd()}; give --cfg-options '
                              f'{name}.ann_file=FILE.')


def check_channels(model: Mapping) -> None:
    """Compare the neck or head that follows our backbone with what that gives, without allocating it.

    Raises:
        ConfigError: if their channels differ.
    """
    backbone = model.get('backbone') or {}
    if backbone.get('type') != BACKBONE:
        return
    backbone = {**backbone, 'init_cfg': None}
    if 'pretrained' in (backbone.get('patch_embed') or {}):
        backbone['patch_embed'] = {**backbone['patch_embed'], 'pretrained': False}
    with torch.device('meta'):
        channels = MODELS.build(backbone).channels
    for name in ('neck', 'head', 'decode_head'):
        part = model.get(name) or {}
        part = part if isinstance(part, Mapping) else part[0]  # of a row of necks or heads
        if 'in_channels' in part:
            _compare(f'model.{name}', part, channels)
        if name == 'neck' and part.get('type') not in (None, 'vit_plugin.TokenPooling'):
            return  # what comes out of it is the host's affair


def _compare(field: str, part: Mapping, channels: Sequence[int]) -> None:
    asked, several = part['in_channels'], isinstance(part['in_channels'], Sequence)
    taken = part.get('in_index', range(len(channels)) if several else -1)
    taken = list(taken) if several else [taken]
    if any(not -len(channels) <= i < len(channels) for i in taken):
        raise ConfigError(f'{field}.in_index={part["in_index"]} asks for more maps than the backbone gives, which are '
                          f'{len(channels)}: change it, or out_indices of the backbone.')
    given = [channels[i] for i in taken]
    if given != (list(asked) if several else [asked]):
        raise ConfigError(f'{field}.in_channels={asked} does not fit the backbone, whose outputs are '
                          f'{", ".join(map(str, channels))} wide: set it to {given if several else given[0]}.')
