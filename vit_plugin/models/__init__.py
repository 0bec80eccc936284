"""Backbones, necks and heads. All but the classification head need no more than MMEngine."""

# isort: off
from vit_plugin import registry  # noqa: F401  first, since it says what to install where MMEngine is missing
# isort: on

from .backbones import VisionTransformer
from .necks import SimpleFPN, TokenPooling
from .stems import PatchEmbed, ResNetEmbed, TimmEmbed

__all__ = ['PatchEmbed', 'ResNetEmbed', 'SimpleFPN', 'TimmEmbed', 'TokenPooling', 'VisionTransformer']

HEADS = ['DistilledClassifier', 'DistilledViTClsHead', 'ViTClsHead']

try:
    from .heads import DistilledClassifier, DistilledViTClsHead, ViTClsHead  # noqa: F401
except Exception:  # MMPretrain is missing or does not fit its neighbours, which is no concern of a detector's
    def __getattr__(name: str) -> type:
        if name in HEADS:
            from . import heads  # raises what was wrong
            return getattr(heads, name)
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
else:
    __all__ += HEADS
