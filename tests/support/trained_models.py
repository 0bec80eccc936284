"""Tiny trained models, as the commands have them."""

from collections.abc import Sequence

from mmengine.config import Config
from mmengine.registry import MODELS

from vit_plugin.inference.trained_model import TrainedModel

NAMES = ('crane', 'cat', 'crane')


def tiny_classifier(tiny: dict, classes: Sequence[str] = NAMES, **more: object) -> TrainedModel:
    """A classifier of three classes, without the steps of a test."""
    model = MODELS.build(
        dict(
            type='mmpretrain.ImageClassifier',
            backbone=dict(type='vit_plugin.VisionTransformer', **tiny, **more),
            head=dict(type='vit_plugin.ViTClsHead', num_classes=3, in_channels=32),
        )
    )
    return TrainedModel(model, Config(dict(default_scope='mmpretrain')), dict(classes=classes))
