"""The Vision Transformer, and what backbones of other libraries share with it."""

from vit_plugin.registry import MODELS, lazy_getattr

from .vit import VisionTransformer

__getattr__ = lazy_getattr(__name__, MODELS)
__all__ = ['VisionTransformer']
