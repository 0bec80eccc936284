"""Plain and hybrid Vision Transformers for the OpenMMLab family.

Importing this package is cheap: it loads neither torch nor a framework. A config that says
``type='vit_plugin.VisionTransformer'`` needs no import at all, because MMEngine then loads
:mod:`vit_plugin.registry` by itself; in code, import from :mod:`vit_plugin.models`.
"""

__version__ = '0.1.0'


def register_models() -> None:
    """Tell MMPretrain about the recipes, see :func:`vit_plugin.model_index.register_models`."""
    from vit_plugin.model_index import register_models
    register_models()
