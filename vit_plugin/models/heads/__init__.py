from .distilled_head import DistilledClassifier, DistilledViTClsHead
from .vit_head import ViTClsHead

__all__ = ['DistilledClassifier', 'DistilledViTClsHead', 'ViTClsHead']
