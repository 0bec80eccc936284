from .vit import VisionTransformer
from .vit_adapter import ViTAdapter

__all__ = ['ViTAdapter', 'VisionTransformer']
