"""A tiny model in the form in which commands load trained ones."""

from collections.abc import Sequence

from mmengine.config import Config
from tiny_models import classifier

from vit_plugin.inference.trained_model import TrainedModel

NAMES = ('crane', 'cat', 'crane')  # ImageNet has two classes of this name


def tiny_classifier(tiny: dict, classes: Sequence[str] = NAMES, **more: object) -> TrainedModel:
    """A classifier of three classes, without a test pipeline; ``more`` are backbone arguments."""
    model = classifier(dict(tiny, **more))
    return TrainedModel(model, Config(dict(default_scope='mmpretrain')), dict(classes=classes))
