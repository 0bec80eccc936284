from .distilled_head import DistilledViTClsHead
from .vit_head import ViTClsHead

__all__ = ['DistilledViTClsHead', 'ViTClsHead']
