from vit_plugin.registry import MODELS, later_of

from .vit import VisionTransformer

__getattr__ = later_of(__name__, MODELS)
__all__ = ['VisionTransformer']
