"""Load a trained model: from a checkpoint with its config, or from weights with their arch."""

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import torch
from mmengine.config import Config
from mmengine.device import get_device
from mmengine.logging import print_log
from mmengine.model import ImgDataPreprocessor, revert_sync_batchnorm
from mmengine.registry import DATASETS, MODELS
from timm.data import ImageNetInfo, infer_imagenet_subset
from torch import Tensor, nn

from vit_plugin.arguments import look_up_class
from vit_plugin.config import check_channels
from vit_plugin.config.scope import import_data_sets, in_scope
from vit_plugin.errors import ConfigError, naming, rejecting
from vit_plugin.importable import make_importable, register_framework_models
from vit_plugin.models.classes import check_classes
from vit_plugin.models.classifier import Classifier, Parts, classifier_parts
from vit_plugin.models.loading import find_backbone, load_trained, load_weights
from vit_plugin.models.loading.loadable import LoadableBackbone
from vit_plugin.models.protocol import innermost
from vit_plugin.registry import CLASSIFIER_SCOPE, needed_class
from vit_plugin.weights.for_mmengine import reading_safely
from vit_plugin.weights.hub import TIMM_SCHEME
from vit_plugin.weights.opening import Checkpoint, open_checkpoint
from vit_plugin.weights.recognition import recognize
from vit_plugin.weights.report import shortened_list
from vit_plugin.weights.saved_settings import training_settings
from vit_plugin.weights.wrapped_model import wrapped_model
from vit_plugin.zoo.data_config import data_config_of

from .answered_task import find_framework_task
from .image_transforms import TimmTransform
from .saved_model import SavedModel, find_checkpoint, open_model
from .trained_model import TrainedModel

WEIGHTS_ALONE = ('.npz', '.safetensors')  # suffixes of files without a config
# Names of a head's weights, to which `recognize` renames those of any format: the classifier, the
# layer before it, and the classifier of the distillation token.
CLASSIFIER = 'head.layers.head.weight'
PRE_LOGITS = 'head.layers.pre_logits.weight'
SECOND_CLASSIFIER = 'head.layers.head_dist.weight'


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
    find_framework_task(cfg)
    import_data_sets(cfg.default_scope)
    with in_scope(cfg.default_scope):
        preprocessor = cfg.model.get('data_preprocessor') or cfg.get('data_preprocessor')
        model = revert_sync_batchnorm(MODELS.build(dict(cfg.model, data_preprocessor=preprocessor)))
        dataset = (cfg.get('test_dataloader') or {}).get('dataset') or {}
        dataset_class = look_up_class(dataset.get('type'), DATASETS, cfg.default_scope)
        meta = {**getattr(dataset_class, 'METAINFO', {}), **(dataset.get('metainfo') or {})}
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


def from_arch(
    arch: str,
    source: str,
    options: Mapping[str, Any] | None = None,
    classify: bool = True,
    which: str | None = None,
) -> TrainedModel:
    """The model of weights without a config, see :func:`load`.

    It is an MMPretrain classifier if the weights include a trained classifier with one of
    ImageNet's class counts. Other heads may be projections, as in CLIP; the model then only returns
    features.
    """
    checkpoint = open_checkpoint(find_checkpoint(source, which))
    with naming(checkpoint.source):
        return _build_from_weights(arch, checkpoint, options, classify)


def _build_from_weights(
    arch: str, checkpoint: Checkpoint, options: Mapping[str, Any] | None, classify: bool
) -> TrainedModel:
    """The model of an open checkpoint, see :func:`from_arch`.

    Raises:
        ConfigError: if its images have other channels than gray or color ones.
    """
    arguments = Config(dict(img_size=training_settings(checkpoint).get('img_size')))
    arguments.merge_from_dict(dict(options or {}))  # resolves the dots in the keys
    parts = classifier_parts(arch, **arguments.to_dict())
    recognized = recognize(checkpoint.weights)
    head = {
        name: recognized[name]
        for name in (CLASSIFIER, PRE_LOGITS, SECOND_CLASSIFIER)
        if classify and name in recognized
    }
    classes = []
    if CLASSIFIER in head and head[CLASSIFIER].any():  # an untrained classifier is all zeros
        classes = imagenet_classes(len(head[CLASSIFIER]))
    model = _with_head(parts, head, len(classes)) if classes else Classifier(parts, num_classes=0)
    backbone, pixels = model.backbone, data_config_of(arch, checkpoint)
    channels = backbone.patch_embed.in_channels
    if channels not in (1, 3):
        raise ConfigError(
            f'patch_embed.in_channels={channels}: weights without a config take gray or color '
            'images; give their config with --config.'
        )
    gray = channels == 1
    mean, std = (
        [255 * value for value in pixels[key][: 1 if gray else 3]] for key in ('mean', 'std')
    )
    model.data_preprocessor = ImgDataPreprocessor(mean, std, bgr_to_rgb=not gray)
    load_weights(model, checkpoint)
    shape = (channels, *backbone.img_size)
    return TrainedModel(
        model,
        Config(dict(default_scope=CLASSIFIER_SCOPE)),
        meta=dict(classes=classes),
        pixels=TimmTransform(dict(pixels, input_size=shape)),
    )


def _with_head(parts: Parts, head: Mapping[str, Tensor], num_classes: int) -> nn.Module:
    """MMPretrain's classifier with the layers that the weights of a head have."""
    register_framework_models(CLASSIFIER_SCOPE)
    classifier = needed_class('a classifier', 'mmpretrain.models.classifiers:ImageClassifier')
    head_cfg: dict[str, Any] = dict(
        type='vit_plugin.ViTClsHead', num_classes=num_classes, in_channels=parts.in_channels
    )
    if SECOND_CLASSIFIER in head:
        head_cfg['type'] = 'vit_plugin.DistilledViTClsHead'
        parts.backbone['out_type'] = 'raw'  # all tokens, since the head takes two of them
    if PRE_LOGITS in head:
        head_cfg['hidden_dim'] = len(head[PRE_LOGITS])
    cfg = dict(backbone=parts.backbone, neck=parts.neck, head=head_cfg)
    check_channels(cfg)
    return classifier(**{name: section and MODELS.build(section) for name, section in cfg.items()})


def imagenet_classes(count: int) -> list[str]:
    """ImageNet's class names, for 1000, 11221, 11821, 21841, 21842 or 21843; empty for others."""
    subset = infer_imagenet_subset(dict(num_classes=count))
    return list(ImageNetInfo(subset).label_descriptions()) if subset else []
