from .eomt import EoMT
from .masked import IBOTViT, MAEViT, SimMIMViT
from .mmpretrain_vit import (
    MMDeiT3,
    MMDistilledVisionTransformer,
    MMMoCoV3ViT,
    MMVisionTransformer,
    MMViTEVA02,
)
from .pmt import PMT
from .timm_backbone import TimmBackbone
from .vit import VisionTransformer
from .vit_adapter import ViTAdapter
from .windowed_vit import WindowedViT

__all__ = [
    'PMT',
    'EoMT',
    'IBOTViT',
    'MAEViT',
    'MMDeiT3',
    'MMDistilledVisionTransformer',
    'MMMoCoV3ViT',
    'MMViTEVA02',
    'MMVisionTransformer',
    'SimMIMViT',
    'TimmBackbone',
    'ViTAdapter',
    'VisionTransformer',
    'WindowedViT',
]
