"""Build the model of weights without a config from the name of its arch."""

from collections.abc import Mapping
from typing import Any

from mmengine.config import Config
from mmengine.model import ImgDataPreprocessor
from mmengine.registry import MODELS
from timm.data import ImageNetInfo, infer_imagenet_subset
from torch import Tensor, nn

from vit_plugin.config import check_channels
from vit_plugin.errors import ConfigError, naming
from vit_plugin.importable import register_framework_models
from vit_plugin.models.classifier import Classifier, Parts, classifier_parts
from vit_plugin.models.loading import load_weights
from vit_plugin.registry import CLASSIFIER_SCOPE, needed_class
from vit_plugin.weights.opening import Checkpoint, open_checkpoint
from vit_plugin.weights.recognition import recognize
from vit_plugin.weights.saved_settings import training_settings
from vit_plugin.zoo.data_config import data_config_of

from .image_transforms import TimmTransform
from .saved_model import find_checkpoint
from .trained_model import TrainedModel

# Names of a head's weights, to which `recognize` renames those of any format: the classifier, the
# layer before it, and the classifier of the distillation token.
CLASSIFIER = 'head.layers.head.weight'
PRE_LOGITS = 'head.layers.pre_logits.weight'
SECOND_CLASSIFIER = 'head.layers.head_dist.weight'


def from_arch(
    arch: str,
    source: str,
    options: Mapping[str, Any] | None = None,
    classify: bool = True,
    which: str | None = None,
) -> TrainedModel:
    """The model of weights without a config, see :func:`~vit_plugin.inference.load.load`.

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
    """The model of an open checkpoint, see :func:`from_arch`."""
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
    pixels, channels = data_config_of(arch, checkpoint), model.backbone.patch_embed.in_channels
    model.data_preprocessor = _preprocessor(pixels, channels)
    load_weights(model, checkpoint)
    shape = (channels, *model.backbone.img_size)
    return TrainedModel(
        model,
        Config(dict(default_scope=CLASSIFIER_SCOPE)),
        meta=dict(classes=classes),
        pixels=TimmTransform(dict(pixels, input_size=shape)),
    )


def _preprocessor(pixels: Mapping[str, Any], channels: int) -> ImgDataPreprocessor:
    """The normalization by timm's data config.

    Raises:
        ConfigError: if the images have other channels than gray or color ones.
    """
    if channels not in (1, 3):
        raise ConfigError(
            f'patch_embed.in_channels={channels}: weights without a config take gray or color '
            'images; give their config with --config.'
        )
    mean, std = ([255 * value for value in pixels[key][:channels]] for key in ('mean', 'std'))
    return ImgDataPreprocessor(mean, std, bgr_to_rgb=channels == 3)


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
