"""The public functions of the package, which are imported at first use."""

import importlib
import inspect

import pytest

import vit_plugin


@pytest.mark.parametrize(
    ('name', 'module', 'first'),
    [
        ('create_model', 'vit_plugin.models.classifier', 'arch'),
        ('load', 'vit_plugin.inference.load', 'checkpoint'),
        ('register_models', 'vit_plugin.inference.model_index', None),
    ],
)
def test_public_function_is_that_of_its_module(name, module, first):
    function = getattr(vit_plugin, name)
    assert function is getattr(importlib.import_module(module), name)
    assert next(iter(inspect.signature(function).parameters), None) == first
    assert function.__doc__


def test_public_names_are_listed_and_unknown_names_raise():
    assert {'create_model', 'load', 'register_models'} < {*vit_plugin.__all__} < {*dir(vit_plugin)}
    with pytest.raises(AttributeError, match=r"module 'vit_plugin' has no attribute 'lod'"):
        vit_plugin.lod  # noqa: B018
