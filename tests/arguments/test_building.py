"""Why MMEngine could not build a part of a config."""

import mmpretrain.models  # noqa: F401  # registers its classes
import pytest
from mmengine.registry import DATASETS, MODELS, OPTIMIZERS, TRANSFORMS
from rejection import rejects

from vit_plugin.arguments import as_config_error, find_class, look_up
from vit_plugin.engine.faults.explain import sentence
from vit_plugin.errors import ConfigError


@pytest.mark.parametrize(
    ('registry', 'cfg', 'words'),
    [
        (MODELS, dict(type='mmpretrain.LinearClsHed'), 'did you mean mmpretrain.LinearClsHead?'),
        (OPTIMIZERS, dict(type='AdamWW'), "no 'AdamWW' among the optimizers; did you mean AdamW?"),
        (
            TRANSFORMS,
            dict(type='mmpretrain.Rotate', angle=3.0, magnitude_levels=3),
            'Rotate takes no magnitude_levels (given magnitude_levels=3); did you mean magn',
        ),
        (MODELS, dict(type='mmpretrain.LinearClsHead', num_classes=3), 'needs in_channels; give'),
        (
            MODELS,
            dict(type='mmpretrain.ImageClassifier', backbone=dict(type='mmpretrain.Resnet')),
            "there is no 'mmpretrain.Resnet' among the models; did you mean ResNet",
        ),
        (
            MODELS,
            dict(
                type='vit_plugin.ViTClsHead',
                num_classes=3,
                in_channels=8,
                loss=dict(type='mmpretrain.LabelSmooth'),
            ),
            "ViTClsHead: loss: there is no 'mmpretrain.LabelSmooth' among the models; did you mean "
            'LabelSmoothLoss?',
        ),
    ],
)
def test_the_part_is_named_with_what_there_is(registry, cfg, words):
    with pytest.raises((KeyError, RuntimeError, TypeError, ConfigError)) as error:
        registry.build(cfg)
    assert words in sentence(error.value)


def test_another_error_is_left_as_it_is():
    """Also one that is raised inside of a constructor."""

    class Part:
        def __init__(self) -> None:
            raise TypeError('3 + None')

    with pytest.raises(TypeError) as error:
        DATASETS.build(dict(type=Part))
    assert sentence(error.value).startswith('TypeError: 3 + None; give --traceback')
    with (
        rejects(r'^part: 3 \+ None \(TypeError\); see its docstring'),
        as_config_error('part'),
    ):
        DATASETS.build(dict(type=Part))


def test_a_name_is_looked_up_in_the_scope_of_a_framework():
    assert look_up('LinearClsHead', MODELS, 'mmpretrain').__name__ == 'LinearClsHead'
    assert look_up('LinearClsHead', MODELS, 'mmengine') is None
    assert look_up(dict, MODELS, None) is dict
    with rejects("^model.head: there is no 'Absent' among the models; na"):
        find_class('model.head', 'Absent', MODELS, 'mmpretrain')
