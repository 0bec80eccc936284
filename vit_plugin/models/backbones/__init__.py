from .vit import VisionTransformer

__all__ = ['VisionTransformer']
