"""The errors of building a component from a config name its place and the nearest name."""

import mmpretrain.models  # noqa: F401  # registers its classes
import pytest
from mmengine.registry import DATASETS, MODELS, OPTIMIZERS, TRANSFORMS
from rejection import rejects

from vit_plugin.arguments import as_config_error, find_class, look_up_class
from vit_plugin.engine.faults.explain import error_sentence
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
def test_errors_name_the_part_and_the_nearest_names(registry, cfg, words):
    with pytest.raises((KeyError, RuntimeError, TypeError, ConfigError)) as error:
        registry.build(cfg)
    assert words in error_sentence(error.value)


def test_errors_inside_constructors_are_kept():

    class Part:
        def __init__(self) -> None:
            raise TypeError('3 + None')

    with pytest.raises(TypeError) as error:
        DATASETS.build(dict(type=Part))
    assert error_sentence(error.value).startswith('TypeError: 3 + None; give --traceback')
    with (
        rejects(r'^part: 3 \+ None \(TypeError\); see its docstring'),
        as_config_error('part'),
    ):
        DATASETS.build(dict(type=Part))


def test_a_type_that_is_no_name_is_reported():
    with pytest.raises(TypeError) as error:
        DATASETS.build(dict(type=3))
    assert error_sentence(error.value).startswith('TypeError: type must be a str')


def test_arguments_that_another_class_takes_by_kwargs_are_not_called_wrong():

    class Part:
        def __init__(self, **kwargs) -> None:
            raise TypeError('3 + None')

    with pytest.raises(TypeError) as error:
        DATASETS.build(dict(type=Part, size=3))
    assert error_sentence(error.value).startswith('TypeError: 3 + None; give --traceback')


@pytest.mark.parametrize(
    ('error', 'words'),
    [
        (TypeError("a() missing 1 required positional argument: 'x'"), "argument: 'x' (TypeError)"),
        (ValueError("'a' is not 'b'."), "part: 'a' is not 'b' (ValueError)"),
        (KeyError('there is no "x".'), 'part: there is no "x" (KeyError)'),
        (KeyError(), 'part: it rejects the values (KeyError)'),
    ],
)
def test_quotes_of_an_error_are_kept(error, words):
    with pytest.raises(ConfigError) as raised, as_config_error('part'):
        raise error
    assert words in str(raised.value)


def test_names_are_looked_up_in_the_scope_of_a_framework():
    assert look_up_class('LinearClsHead', MODELS, 'mmpretrain').__name__ == 'LinearClsHead'
    assert look_up_class('LinearClsHead', MODELS, 'mmengine') is None
    assert look_up_class(dict, MODELS, None) is dict
    with rejects("^model.head: there is no 'Absent' among the models; na"):
        find_class('model.head', 'Absent', MODELS, 'mmpretrain')
