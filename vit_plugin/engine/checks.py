"""Check a config in a second for errors that would otherwise appear after minutes."""

import inspect
import logging
import math
import os
import tempfile
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from difflib import get_close_matches
from importlib.util import find_spec
from numbers import Integral, Real
from typing import Any

import torch
from mmengine.config import Config, ConfigDict
from mmengine.model import BaseModule
from mmengine.registry import DATASETS, HOOKS, MODELS, OPTIM_WRAPPERS, OPTIMIZERS, RUNNERS
from mmengine.runner import Runner
from torch import nn

from vit_plugin.errors import ConfigError
from vit_plugin.weights.folders import read_manifest

from .explain import nearest, parameters, registered

HOSTS = ('mmpretrain', 'mmdet', 'mmseg', 'mmengine')
LOADERS = ('train_dataloader', 'val_dataloader', 'test_dataloader')
BACKBONE, ADAPTER, POOLING = 'vit_plugin.VisionTransformer', 'vit_plugin.ViTAdapter', 'vit_plugin.TokenPooling'


def check_config(cfg: Config, loaders: Sequence[str] = LOADERS) -> None:
    """Check a config before the run.

    Args:
        cfg: the config.
        loaders: the data loaders that will be used.

    Raises:
        ConfigError: if a number is out of range, if the work directory cannot be written, if the checkpoint, a data
            folder or an annotation file is missing, or if the neck or head does not fit the backbone.
    """
    check_parts(cfg, loaders)
    check_numbers(cfg)
    _check_work_dir(cfg.work_dir)
    check_checkpoint(cfg.get('load_from'))
    check_checkpoint(cfg.get('begin_from'))
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
    """Raise a ``ConfigError`` if a local path is neither a file nor a checkpoint folder."""
    if path and '://' not in path:
        if os.path.isdir(path):
            read_manifest(path)
        elif not os.path.isfile(path):
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
    return kind is not None and 'download' in inspect.signature(kind).parameters and dataset.get('download', True)


def _check_evaluator(field: str, cfg: Config) -> None:
    """Check the annotation file of a metric. Its path is its own and does not include ``data_root``."""
    metrics = cfg.get(field) or []
    for i, metric in enumerate([metrics] if isinstance(metrics, Mapping) else metrics):
        file = metric.get('ann_file')
        if file and '://' not in file and not os.path.isfile(file):
            name = field if isinstance(metrics, Mapping) else f'{field}.{i}'
            raise ConfigError(f'{name}: there is no file {file!r} in {os.getcwd()}; give --cfg-options '
                              f'{name}.ann_file=FILE.')


def check_channels(model: Mapping) -> None:
    """Compare the channels of the neck or head with those of our backbone, without allocating the backbone.

    Also sets the number of tokens before the patches in a ``TokenPooling``.

    Raises:
        ConfigError: if the channels differ.
    """
    backbone = model.get('backbone') or {}
    if backbone.get('type') not in (BACKBONE, ADAPTER):
        return
    with torch.device('meta'):
        built = MODELS.build(_untrained(backbone))
    channels = built.channels
    for name in ('neck', 'head', 'decode_head'):
        part = model.get(name) or {}
        part = part if isinstance(part, Mapping) else part[0]  # the first of several necks or heads
        if 'in_channels' in part:
            _compare(f'model.{name}', part, channels)
        if part.get('type') == POOLING and getattr(built, 'out_type', None) == 'raw':
            _settle_prefix_tokens(part, built)
        elif name == 'neck' and part.get('type') not in (None, POOLING):
            return  # its outputs are not checked here


def _untrained(backbone: Mapping) -> dict:
    """The config of a backbone without its checkpoints. Those are not read for a look at its shapes."""
    backbone = {**backbone, 'init_cfg': None}
    if 'pretrained' in (backbone.get('patch_embed') or {}):
        backbone['patch_embed'] = {**backbone['patch_embed'], 'pretrained': False}
    if isinstance(backbone.get('backbone'), Mapping):  # of an adapter
        backbone['backbone'] = _untrained(backbone['backbone'])
    return backbone


def _settle_prefix_tokens(neck: MutableMapping, backbone: BaseModule) -> None:
    """Set the neck's number of tokens before the patches, or check it if it is given."""
    number = backbone.num_prefix_tokens
    if neck.get('num_prefix_tokens') is None:
        neck['num_prefix_tokens'] = number
    if neck['num_prefix_tokens'] != number:
        raise ConfigError(f'model.neck.num_prefix_tokens={neck["num_prefix_tokens"]} does not fit the backbone, which '
                          f'gives {number} tokens before the patches: leave it out.')
    if neck.get('mode') == 'cls' and 'cls_token' not in backbone.prefix_tokens:
        raise ConfigError("model.neck.mode='cls' takes the class token, and the backbone has none: set "
                          "with_cls_token=True there, or mode='avg'.")


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


# Besides the model, a run needs these parts for each data loader.
NEEDED = {
    'train_dataloader': ('train_cfg', 'optim_wrapper'), 'val_dataloader': (), 'test_dataloader': ('test_evaluator', )}
LEVELS = ('CRITICAL', 'ERROR', 'WARNING', 'INFO', 'DEBUG')
REGISTRIES = {'runner_type': RUNNERS, 'optim_wrapper.type': OPTIM_WRAPPERS, 'optim_wrapper.optimizer.type': OPTIMIZERS}


def check_parts(cfg: Config, loaders: Sequence[str]) -> None:
    """Check that the parts of a run exist, and names that MMEngine does not check itself.

    Raises:
        ConfigError: names the wrong part.
    """
    settings = cfg.to_dict()
    needed = {name: loader for loader in loaders if settings.get(loader) or loader == loaders[0]
              for name in (loader, *NEEDED[loader])}
    for name in (*needed, *(f'{loader}.dataset' for loader in loaders if settings.get(loader))):
        value = _at(settings, name)
        if not isinstance(value, (Mapping, list)) or not value:
            raise ConfigError(f'{name}={value!r} must be a dict with settings.')
    scope = settings.get('default_scope')
    if scope and scope not in MODELS.children and not find_spec(scope):
        raise ConfigError(f'default_scope={scope!r} is no package that is installed{nearest(scope, HOSTS)}.')
    level = settings.get('log_level', 'INFO')
    if not isinstance(level, str) or not isinstance(logging.getLevelName(level), int):
        raise ConfigError(f'log_level={level!r} is no level{nearest(str(level), LEVELS)}.')
    for field, registry in REGISTRIES.items():
        name = _at(settings, field)
        with registry.switch_scope_and_registry(scope) as here:
            if isinstance(name, str) and here.get(name) is None:
                raise ConfigError(f'{field}={name!r} is not registered{nearest(name, registered(here))}.')


def _at(settings: Any, field: str) -> Any:
    """The value of a dotted name, or None."""
    for name in field.split('.'):
        settings = settings.get(name) if isinstance(settings, Mapping) else None
    return settings


# Numbers in a config: smallest value and type.
LEAST = {
    'train_cfg.max_epochs': (1, int), 'train_cfg.max_iters': (1, int), 'train_cfg.val_interval': (1, int),
    'train_dataloader.batch_size': (1, int), 'val_dataloader.batch_size': (1, int),
    'test_dataloader.batch_size': (1, int), 'train_dataloader.num_workers': (0, int),
    'val_dataloader.num_workers': (0, int), 'test_dataloader.num_workers': (0, int),
    'optim_wrapper.optimizer.lr': (0, float), 'optim_wrapper.optimizer.weight_decay': (0, float),
    'optim_wrapper.accumulative_counts': (1, int), 'optim_wrapper.clip_grad.max_norm': (0, float),
    'default_hooks.logger.interval': (1, int), 'default_hooks.checkpoint.max_keep_ckpts': (-1, int),
    'default_hooks.checkpoint.interval': (-1, int), 'randomness.seed': (0, int), 'schedule_length': (1, int),
    'auto_scale_lr.base_batch_size': (1, int), 'env_cfg.dist_cfg.timeout': (1, float),
}


def check_numbers(cfg: Config) -> None:
    """Check the type and range of the numbers that all frameworks use in the same way.

    Raises:
        ConfigError: names the first wrong number.
    """
    settings = cfg.to_dict()
    for field, (least, kind) in LEAST.items():
        value = _at(settings, field)
        if value is None:
            continue
        right = isinstance(value, Integral if kind is int else Real) and not isinstance(value, bool)
        if not right or not least <= value < math.inf:
            wanted = 'a whole number' if kind is int else 'a number'
            raise ConfigError(f'{field}={value!r} must be {wanted}, {least} or more.')


# Settings that MMEngine, the frameworks or our tools read in addition to the runner's arguments. Groups without a type
# list their settings here, because no constructor would refuse a wrong name.
FREE = {'custom_imports', 'model_wrapper_cfg', 'compile', 'activation_checkpointing', 'efficient_conv_bn_eval',
        'runner_type', 'strategy', 'schedule_length', 'tta_model', 'tta_pipeline', 'find_unused_parameters', 'launcher',
        'gpu_ids', 'optimize', 'unreadable'}
GROUPS = {
    'unreadable': {'max_share'},
    'env_cfg': {'cudnn_benchmark', 'mp_cfg', 'dist_cfg', 'resource_limit'},
    'auto_scale_lr': {'base_batch_size', 'enable'},
    'randomness': {'seed', 'deterministic', 'diff_rank_seed'},
    'optim_wrapper.paramwise_cfg': {
        'layer_decay_rate', 'custom_keys', 'bias_lr_mult', 'bias_decay_mult', 'norm_decay_mult', 'flat_decay_mult',
        'dwconv_decay_mult', 'dcn_offset_lr_mult', 'bypass_duplicate'},
}


def check_options(cfg: Config, options: Mapping[str, Any]) -> None:
    """Find names in ``--cfg-options`` that nothing would read.

    The constructor of a part with a type checks its own names. Elsewhere, a new name is refused if it is similar to an
    existing one.

    Raises:
        ConfigError: gives the nearest name.
    """
    settings = cfg.to_dict()
    for option in options:
        at: Any = settings
        path: list[str] = []
        for name in option.split('.'):
            if isinstance(at, (list, tuple)):
                if not name.isdecimal() or int(name) >= len(at):
                    raise ConfigError(f'--cfg-options {option}: {".".join(path)} is a list, whose parts are named by '
                                      f'their numbers from 0 to {len(at) - 1}.')
                at = at[int(name)]
            elif isinstance(at, Mapping):
                if name not in at:
                    _check_new(option, '.'.join(path), name, at)
                    break
                at = at[name]
            elif at is None:
                break
            else:
                raise ConfigError(f'--cfg-options {option}: {".".join(path)}={at!r} has no settings of its own.')
            path.append(name)


def _check_new(option: str, path: str, name: str, siblings: Mapping) -> None:
    allowed = GROUPS.get(path)
    if not path:
        allowed = FREE | set(inspect.signature(Runner).parameters)
    if path.startswith('default_hooks.') and (hook := HOOKS.get(siblings.get('type', ''))):
        allowed = parameters(hook)
    if name in allowed if allowed else 'type' in siblings or not get_close_matches(name, list(siblings), 1, 0.8):
        return
    near = nearest(name, {*(allowed or ()), *siblings})
    raise ConfigError(f'--cfg-options {option}: {path or "a config"} has no setting {name!r}{near}.')


# Parts of a model whose `num_classes` must equal that of the data, in any framework.
HEADS = ('head', 'bbox_head', 'mask_head', 'roi_head.bbox_head', 'roi_head.mask_head', 'decode_head', 'auxiliary_head')


def check_classes(model: nn.Module, dataset: Any) -> None:
    """Compare the number of classes in a data set with the heads of the model.

    Raises:
        ConfigError: if a head has another number of classes.
    """
    names = (getattr(dataset, 'metainfo', None) or {}).get('classes')
    if not names:
        return
    kind = type(getattr(dataset, 'unseeded', dataset)).__name__
    model = getattr(model, 'module', model)  # of several processes, or of test-time augmentation
    modules = dict(model.named_modules())
    for name in HEADS:
        part = modules.get(name)
        for i, head in [(None, part), *enumerate(part if isinstance(part, nn.ModuleList) else ())]:
            asked = getattr(head, 'num_classes', None)
            if isinstance(asked, int) and asked != len(names):
                field = name if i is None else f'{name}.{i}'
                raise ConfigError(
                    f'model.{field}.num_classes={asked} does not fit the data set, a {kind} with '
                    f'{len(names)} classes: set it to {len(names)}, or give the data set the metainfo of the model\'s '
                    'classes.')
