"""Tiny trained models, as the commands have them."""

from collections.abc import Sequence

from mmengine.config import Config
from tiny_models import classifier

from vit_plugin.inference.trained_model import TrainedModel

NAMES = ('crane', 'cat', 'crane')


def tiny_classifier(tiny: dict, classes: Sequence[str] = NAMES, **more: object) -> TrainedModel:
    """A classifier of three classes, without the steps of a test."""
    model = classifier(dict(tiny, **more))
    return TrainedModel(model, Config(dict(default_scope='mmpretrain')), dict(classes=classes))
