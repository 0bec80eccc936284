"""Backbones, necks, heads and a preprocessor. Only the parts for classifiers need MMPretrain."""

# isort: off
# First, since it says what to install where MMEngine is missing.
from vit_plugin.registry import MODELS, later_of
# isort: on

from .backbones import (
    PMT,
    EoMT,
    IBOTViT,
    MAEViT,
    SimMIMViT,
    TimmBackbone,
    VisionTransformer,
    ViTAdapter,
    WindowedViT,
)
from .loading import load_weights
from .necks import C2fProjector, SimpleFPN, TokenPooling
from .stems import (
    ConvEmbed,
    FlexiPatchEmbed,
    MBConvEmbed,
    PatchEmbed,
    PooledResNetEmbed,
    ResNetEmbed,
    TimmEmbed,
)

MODELS.import_later(
    {
        'AugmentingPreprocessor': 'vit_plugin.models.data_preprocessor',
        'DINO': 'vit_plugin.models.selfsup.dino',
        'DINOHead': 'vit_plugin.models.selfsup.dino',
        'DINONeck': 'vit_plugin.models.selfsup.dino',
        'DistilledViTClsHead': 'vit_plugin.models.heads.distilled_head',
        'Distiller': 'vit_plugin.models.distillation.distiller',
        'GramDistillation': 'vit_plugin.models.distillation.losses',
        'LeJEPA': 'vit_plugin.models.selfsup.lejepa',
        'LeJEPAHead': 'vit_plugin.models.selfsup.lejepa',
        'LogitDistillation': 'vit_plugin.models.distillation.losses',
        'MapDistillation': 'vit_plugin.models.distillation.losses',
        'SimilarityDistillation': 'vit_plugin.models.distillation.losses',
        'VectorDistillation': 'vit_plugin.models.distillation.losses',
        'MultiViewPreprocessor': 'vit_plugin.models.data_preprocessor',
        'EoMTDecodeHead': 'vit_plugin.models.heads.eomt_decode_head',
        'EoMTHead': 'vit_plugin.models.heads.eomt_head',
        'IoUAwareBCELoss': 'vit_plugin.models.heads.iou_aware_loss',
        'LWDETRHead': 'vit_plugin.models.heads.lw_detr_head',
        'SoftDiceLoss': 'vit_plugin.models.heads.soft_dice_loss',
        'TransUNetHead': 'vit_plugin.models.heads.transunet_head',
        'ViTClsHead': 'vit_plugin.models.heads.vit_head',
    }
)
__getattr__ = later_of(__name__, MODELS)
__all__ = [
    'PMT',
    'C2fProjector',
    'ConvEmbed',
    'EoMT',
    'FlexiPatchEmbed',
    'IBOTViT',
    'MAEViT',
    'MBConvEmbed',
    'PatchEmbed',
    'PooledResNetEmbed',
    'ResNetEmbed',
    'SimMIMViT',
    'SimpleFPN',
    'TimmBackbone',
    'TimmEmbed',
    'TokenPooling',
    'ViTAdapter',
    'VisionTransformer',
    'WindowedViT',
    'load_weights',
]
