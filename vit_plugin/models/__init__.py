"""Backbones, necks and heads. All but the classification head need no more than MMEngine."""

from importlib.util import find_spec

from .backbones import VisionTransformer
from .necks import TokenPooling
from .stems import PatchEmbed, ResNetEmbed, TimmEmbed

__all__ = ['PatchEmbed', 'ResNetEmbed', 'TimmEmbed', 'TokenPooling', 'ViTClsHead', 'VisionTransformer']

if find_spec('mmpretrain'):
    from .heads import ViTClsHead
else:
    def __getattr__(name: str) -> type:
        if name == 'ViTClsHead':
            from .heads import ViTClsHead  # says what to install
            return ViTClsHead
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
