"""The outputs of a student or a teacher that distillation compares: a vector, a map and logits.

Students are classifiers or backbones of this package. Teachers may also be models of timm and of
MMPretrain, so :func:`outputs_of` calls each kind of model in its own way.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from torch import Tensor, nn

from vit_plugin.models.backbones.vit import VisionTransformer
from vit_plugin.models.backbones.wrapped import WrappedBackbone
from vit_plugin.models.classifier import Classifier
from vit_plugin.models.layers.outputs import MAP_OUT_TYPES, to_map
from vit_plugin.models.protocol import HasChannels, Shardable
from vit_plugin.registry import needed_class
from vit_plugin.zoo.feature_maps import feature_modules, supports_final_norm

BaseClassifier: Any = needed_class('Distiller', 'mmpretrain.models.classifiers:BaseClassifier')


class Outputs(NamedTuple):
    """Outputs of a model for a batch of images. None for those that the model does not have.

    Attributes:
        features: the input of the head; its last entry is that of the last block.
        vector: the vector of each image (B, C), before the classifier.
        map: the last feature map (B, C', h, w).
        logits: the logits of the classes (B, num_classes).
    """

    features: Sequence[Any]
    vector: Tensor | None = None
    map: Tensor | None = None
    logits: Tensor | None = None


def outputs_of(model: nn.Module, images: Tensor) -> Outputs:
    """Outputs for normalized images (B, C, H, W), from one forward of the backbone.

    Args:
        model: a backbone, a classifier of MMPretrain, a
            :class:`~vit_plugin.models.classifier.Classifier`, a timm model, or a model with a
            ``backbone``, such as MoCo v3, whose other components are ignored.
        images: normalized as the model expects.
    """
    if hasattr(model, 'forward_head'):
        return _timm_outputs(model, images)
    backbone = _backbone_of(model)
    features, feature_map = _backbone_outputs(backbone, images)
    logits = None
    if isinstance(model, Classifier):
        features = model.neck(features)
        logits = model.head(features[-1]) if model.num_classes else None
    elif isinstance(model, BaseClassifier):
        features = model.neck(features) if model.with_neck else features
        logits = model.head(features) if model.with_head else None
    return Outputs(features, _vector(features[-1]), feature_map, logits)


class OutputsOf(nn.Module):
    """A module whose forward is :func:`outputs_of` a model.

    Sharding and compilation need a module that is called as a whole.

    Args:
        model: see :func:`outputs_of`.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> Outputs:
        return outputs_of(self.model, images)

    def parts_to_shard(self) -> list[nn.Module]:
        """timm's blocks, or the backbone. Empty if modules of the model name their own parts."""
        if any(isinstance(module, Shardable) for module in self.model.modules()):
            return []
        if hasattr(self.model, 'forward_head'):
            return feature_modules(self.model)
        return [_backbone_of(self.model)]


def _backbone_of(model: nn.Module) -> nn.Module:
    """The backbone of a model, or the model itself if it is one: only backbones state channels."""
    return model if isinstance(model, HasChannels) else model.backbone


def _backbone_outputs(backbone: nn.Module, images: Tensor) -> tuple[Sequence[Any], Tensor | None]:
    """The outputs of a backbone, and its last feature map, if it has one.

    Our backbones have one for any ``out_type``.
    """
    if isinstance(backbone, VisionTransformer) and backbone.out_type not in MAP_OUT_TYPES:
        tokens, grid = backbone.features(images)
        feature_map = to_map(tokens[-1], backbone.num_prefix_tokens, grid)
        return [backbone.output(x, grid) for x in tokens], feature_map
    if isinstance(backbone, WrappedBackbone) and backbone.out_type == 'pooled':
        vector, feature_map = backbone.vector_and_map(images)
        return [vector], feature_map
    features = backbone(images)
    last = features[-1]
    return features, last if isinstance(last, Tensor) and last.ndim == 4 else None


def _timm_outputs(model: Any, images: Tensor) -> Outputs:
    """The outputs of a complete model of timm, as its own ``forward`` computes them."""
    maps: Sequence[Tensor | None] = [None]
    if hasattr(model, 'forward_intermediates'):
        x, maps = model.forward_intermediates(
            images, indices=1, norm=supports_final_norm(model), output_fmt='NCHW'
        )
    else:
        x = model.forward_features(images)
    vector = model.forward_head(x, pre_logits=True)
    return Outputs([vector], vector, maps[-1], model.forward_head(x) if model.num_classes else None)


def _vector(feature: Any) -> Tensor:
    """The vectors of images (B, C), from any kind of output of a backbone.

    They are the first of tokens (B, N, C), the mean of a map (B, C, h, w), or the output itself.
    """
    # Patches (B, h*w, C) or a map with the class token (B, C), or the class token with another one.
    if isinstance(feature, (list, tuple)):
        return next(x for x in feature if x.ndim == 2)
    if feature.ndim == 3:
        return feature[:, 0]
    if feature.ndim == 4:
        return feature.mean(dim=(2, 3))
    return feature
