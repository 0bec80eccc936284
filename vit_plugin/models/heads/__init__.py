from .vit_head import ViTClsHead

__all__ = ['ViTClsHead']
