"""Plain and hybrid Vision Transformers for the OpenMMLab family.

Importing this package is cheap: it loads neither torch nor a framework. A config that says
``type='vit_plugin.VisionTransformer'`` needs no import at all, because MMEngine then loads
:mod:`vit_plugin.registry` by itself; in code, import from :mod:`vit_plugin.models`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vit_plugin.inference.load import load
    from vit_plugin.inference.model_index import register_models
    from vit_plugin.models.classifier import create_model

__version__ = '0.1.0'
__all__ = ['__version__', 'create_model', 'load', 'register_models']

# The modules that define the public functions, imported on first use (PEP 562).
_MODULES = dict(
    create_model='vit_plugin.models.classifier',
    load='vit_plugin.inference.load',
    register_models='vit_plugin.inference.model_index',
)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
