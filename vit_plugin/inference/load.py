"""Load a trained model: from a checkpoint with its config, or from weights with their arch."""

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import torch
from mmengine.device import get_device
from mmengine.logging import print_log
from mmengine.model import revert_sync_batchnorm
from mmengine.registry import DATASETS, MODELS
from torch import nn

from vit_plugin.arguments import look_up_class
from vit_plugin.config.metainfo import stated_metainfo
from vit_plugin.config.scope import import_data_sets, in_scope
from vit_plugin.errors import ConfigError, naming, rejecting
from vit_plugin.importable import make_importable
from vit_plugin.models.classes import check_classes
from vit_plugin.models.loading import find_backbone, load_trained, load_weights
from vit_plugin.models.loading.loadable import LoadableBackbone
from vit_plugin.models.protocol import innermost
from vit_plugin.registry import CLASSIFIER_SCOPE
from vit_plugin.weights.for_mmengine import reading_safely
from vit_plugin.weights.hub import TIMM_SCHEME
from vit_plugin.weights.opening import Checkpoint
from vit_plugin.weights.report import shortened_list
from vit_plugin.weights.wrapped_model import wrapped_model

from .saved_model import SavedModel, open_model
from .trained_model import TrainedModel
from .weights_with_arch import from_arch

WEIGHTS_ALONE = ('.npz', '.safetensors')  # suffixes of files without a config


def load(
    checkpoint: str | Path,
    config: str | None = None,
    arch: str | None = None,
    device: str | None = None,
    cfg_options: Mapping[str, Any] | None = None,
    classify: bool | None = True,
    which: str | None = None,
) -> TrainedModel:
    """Read a trained model. ``vit_plugin.load(checkpoint)('photo.jpg')`` is its prediction.

    No code in a checkpoint is run: its config is data, see :mod:`vit_plugin.untrusted.admission`. A
    ``config`` is a program.

    One process can hold models of all tasks, and load them in any order, after any import, and in
    threads. In a child process that is forked afterward, torch has one thread.

    Args:
        checkpoint: a checkpoint of a training by MMEngine, the folder of a run, or what
            ``vit-plugin convert`` made of it for a hub, as a folder or ``hf://USER/NAME``; weights
            of any format of :data:`~vit_plugin.weights.formats.FORMATS` with their ``arch``; or
            ``timm://NAME``.
        config: the config of the checkpoint. Default: that in the checkpoint.
        arch: the arch of weights without a config, such as ``'B/16'``.
        device: default: a GPU if there is one.
        cfg_options: settings to change in the config, by their dotted names, or further arguments
            of the backbone of ``arch``.
        classify: whether the neck and head are needed too. Otherwise weights of the backbone are
            enough. None: only if the model has a head.
        which: the checkpoint of a run's folder: ``'best'``, ``'last'`` or a file's name. Default:
            the best one if one was saved, otherwise the last.

    Raises:
        ConfigError: if neither the checkpoint nor an argument says what the model is, or if the
            checkpoint cannot be read, is of another model, lacks weights that are needed or has
            values that are not finite.
    """
    checkpoint = str(checkpoint)
    if config and arch:
        raise ConfigError('--config and --arch both say what the model is; give one of them.')
    device = device or get_device()
    check_device(device)
    make_importable()
    _compute_in_forks()
    if checkpoint.startswith(TIMM_SCHEME) and not (arch or config or wrapped_model(checkpoint)):
        arch = checkpoint
    with in_scope(None), reading_safely():
        if arch:
            with in_scope(CLASSIFIER_SCOPE):  # a run in this process may have left another scope
                trained = from_arch(
                    arch, checkpoint, cfg_options, classify=classify is not False, which=which
                )
        else:
            saved = open_model(checkpoint, config, cfg_options, use='predict', which=which)
            trained = from_config(saved, only_backbone=classify is False, headless=not classify)
    trained.model.to(device)
    return trained


@cache
def _compute_in_forks() -> None:
    """Let torch compute in processes that are forked from this one.

    GNU OpenMP does not restart its threads after a fork, and waits for them forever. So a child
    gets one thread, like the workers of a data loader.
    """
    if hasattr(os, 'register_at_fork'):
        os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))


def check_device(device: str) -> None:
    """Raise a ``ConfigError`` if this machine does not have the device."""
    what, remedy = f'--device {device!r} is not in this machine', f'give --device {get_device()}'
    with rejecting(what, remedy, (RuntimeError, AssertionError)):
        torch.empty(0, device=device)


def from_config(
    saved: SavedModel, only_backbone: bool = False, headless: bool = False
) -> TrainedModel:
    """The model of a checkpoint with a config, see :func:`load`.

    Args:
        saved: the checkpoint and its config.
        only_backbone: whether weights of another format may leave the neck and head at their
            initialization, because only features are needed.
        headless: whether a model without a head is accepted.
    """
    checkpoint, cfg = saved
    path = checkpoint.source
    cfg.setdefault('default_scope', CLASSIFIER_SCOPE)
    import_data_sets(cfg.default_scope)
    with in_scope(cfg.default_scope):
        preprocessor = cfg.model.get('data_preprocessor') or cfg.get('data_preprocessor')
        model = revert_sync_batchnorm(MODELS.build(dict(cfg.model, data_preprocessor=preprocessor)))
        dataset = (cfg.get('test_dataloader') or {}).get('dataset') or {}
        dataset_class = look_up_class(dataset.get('type'), DATASETS, cfg.default_scope)
        # Its classes may be in a text file only if the user gave the config: in that of a
        # checkpoint, `validate_untrusted` rejects the name of a file.
        meta = stated_metainfo(dataset, getattr(dataset_class, 'METAINFO', {}))
    # torch keeps modules elsewhere, so vars(model) has a 'head' only if it is None.
    if not headless and vars(model).get('head', model) is None:
        raise ConfigError(
            f'{path!r} gives features of an image and no classes, since it has no head. vit-plugin '
            'embed writes them, and load(..., classify=False) is it in Python; vit-plugin train '
            f'--data FOLDER --weights {path} trains a head.'
        )
    weights_alone = '://' in path or path.endswith(WEIGHTS_ALONE)
    # With all parameters under their own names, it is a checkpoint of this model and no conversion.
    complete = dict(model.named_parameters()).keys() <= checkpoint.weights.keys()
    if weights_alone and not complete and innermost(model, LoadableBackbone):
        with naming(path):
            _load_converted(model, checkpoint, only_backbone)
    else:
        load_trained(model, checkpoint)
    check_classes(model, checkpoint.dataset_meta, f'the checkpoint {path!r}')
    meta.update(checkpoint.dataset_meta)
    return TrainedModel(model, cfg, meta)


def _load_converted(model: nn.Module, checkpoint: Checkpoint, only_backbone: bool) -> None:
    """Load weights of another format into a complete model, or only into its backbone.

    Raises:
        ConfigError: if the checkpoint lacks weights that are needed.
    """
    backbone = find_backbone(model)[1]
    report = load_weights(model, checkpoint)
    print_log(f'Loaded {checkpoint.source}\n{report}', 'current')
    needed = backbone.state_dict() if only_backbone else report.untrained
    missing = {name: why for name, why in report.untrained.items() if name in needed}
    if missing:
        raise ConfigError(
            f'The checkpoint {checkpoint.source!r} is not of the complete model: it has no values '
            f'for {shortened_list(missing)} ({next(iter(missing.values()))}); give the checkpoint '
            'of its training.'
        )
