"""Plain and hybrid Vision Transformers for the OpenMMLab family.

Importing this package is cheap: it loads neither torch nor a framework. A config that says
``type='vit_plugin.VisionTransformer'`` needs no import at all, because MMEngine then loads
:mod:`vit_plugin.registry` by itself; in code, import from :mod:`vit_plugin.models`.
"""

from typing import Any

__version__ = '0.1.0'


def register_models() -> None:
    """Register the recipes, see :func:`vit_plugin.apps.model_index.register_models`."""
    from vit_plugin.apps.model_index import register_models

    register_models()


def create_model(*args: Any, **kwargs: Any) -> Any:
    """A classifier for plain PyTorch, see :func:`vit_plugin.models.classifier.create_model`."""
    from vit_plugin.models.classifier import create_model

    return create_model(*args, **kwargs)


def load(*args: Any, **kwargs: Any) -> Any:
    """A trained model, to call with an image, see :func:`vit_plugin.apps.load.load`."""
    from vit_plugin.apps.load import load

    return load(*args, **kwargs)
