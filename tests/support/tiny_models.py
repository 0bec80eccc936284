"""Sizes of tiny models, random weights for them, and models built on such backbones."""

from collections.abc import Mapping
from typing import Any, TypeVar

import torch
from mmengine.registry import MODELS
from torch import nn

from vit_plugin.arch import parse_arch
from vit_plugin.config.task_model import ModelFacts

Model = TypeVar('Model', bound=nn.Module)
TINY_SIZES = dict(embed_dims=32, num_layers=2, num_heads=2, feedforward_channels=64)
TINY = dict(TINY_SIZES, patch_size=8)
CENTRED = dict(type='none', rotary=dict(form='centred', planes='halves'))  # DINOv3's positions


def randomize(model: Model, std: float = 0.05) -> Model:
    """Set random weights and statistics in place, since zeros and ones hide mistakes.

    Vectors, such as scales and variances, get values from 0.5 to 1.5, so that no output vanishes.
    """
    for value in (*model.parameters(), *model.buffers()):
        if value.is_floating_point():
            nn.init.normal_(value, std=std) if value.ndim > 1 else nn.init.uniform_(value, 0.5, 1.5)
    return model


def classifier(
    backbone: Mapping[str, Any], classes: int = 3, neck: dict | None = None, **head: Any
) -> nn.Module:
    """MMPretrain's classifier on a VisionTransformer, in eval mode.

    Args:
        backbone: arguments of the VisionTransformer.
        classes: number of classes; with 0 there is no head.
        neck: config of a neck.
        **head: other arguments of the head, which is a ViTClsHead unless they have a type.
    """
    width = parse_arch(backbone['arch']).embed_dims
    head = dict(type='vit_plugin.ViTClsHead', num_classes=classes, in_channels=width) | head
    return MODELS.build(
        dict(
            type='mmpretrain.ImageClassifier',
            backbone=dict(backbone, type='vit_plugin.VisionTransformer'),
            neck=neck,
            head=head if classes else None,
        )
    ).eval()


def model_facts(arguments: Mapping[str, Any], size: tuple[int, int], **facts: Any) -> ModelFacts:
    """Facts of a model for three classes. Its ``build`` makes the backbone on the meta device.

    Args:
        arguments: arguments of the backbone, with its type unless it is a VisionTransformer.
        size: height and width of the images in pixels.
        **facts: further facts, or replacements of these.
    """

    def build(**changes: Any) -> nn.Module:
        with torch.device('meta'):
            return MODELS.build({'type': 'vit_plugin.VisionTransformer', **arguments, **changes})

    return ModelFacts(
        **{'classes': 3, 'size': size, 'arguments': arguments, 'build': build} | facts
    )
