"""Backbones, necks, heads and a preprocessor. Only what is of MMPretrain's classifiers needs more than MMEngine."""

from importlib import import_module

# isort: off
from vit_plugin import registry  # noqa: F401  first, since it says what to install where MMEngine is missing
# isort: on

from .backbones import VisionTransformer
from .necks import SimpleFPN, TokenPooling
from .stems import PatchEmbed, ResNetEmbed, TimmEmbed

__all__ = ['PatchEmbed', 'ResNetEmbed', 'SimpleFPN', 'TimmEmbed', 'TokenPooling', 'VisionTransformer']

# What is of MMPretrain's classifiers, and where it is.
OF_CLASSIFIERS = {
    'AugmentingPreprocessor': '.data_preprocessor',
    **dict.fromkeys(('DistilledClassifier', 'DistilledViTClsHead', 'ViTClsHead'), '.heads'),
}

try:
    from .data_preprocessor import AugmentingPreprocessor  # noqa: F401
    from .heads import DistilledClassifier, DistilledViTClsHead, ViTClsHead  # noqa: F401
except Exception:  # MMPretrain is missing or does not fit its neighbours, which is no concern of a detector's
    def __getattr__(name: str) -> type:
        if name in OF_CLASSIFIERS:
            return getattr(import_module(OF_CLASSIFIERS[name], __name__), name)  # raises what was wrong
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
else:
    __all__ += OF_CLASSIFIERS
