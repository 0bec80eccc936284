"""Backbones, necks, heads and preprocessors.

Heads and preprocessors need MMPretrain or MMDetection, so they are imported when first used.
"""

# isort: off
# This import comes first, since its error says what to install if MMEngine is missing.
from vit_plugin.registry import MODELS, lazy_getattr
# isort: on

from .backbones import VisionTransformer
from .loading import load_weights
from .necks.simple_fpn import SimpleFPN
from .necks.token_pooling import TokenPooling
from .stems import (
    ConvEmbed,
    FlexiPatchEmbed,
    MBConvEmbed,
    PatchEmbed,
    PooledResNetEmbed,
    ResNetEmbed,
    TimmEmbed,
)

MODELS.register_lazily(
    {
        'AugmentingPreprocessor': 'vit_plugin.models.data_preprocessor',
        'BandsPreprocessor': 'vit_plugin.detection.bands_preprocessor',
        'DistilledViTClsHead': 'vit_plugin.models.heads.distilled_head',
        'MultiViewPreprocessor': 'vit_plugin.models.data_preprocessor',
        'ViTClsHead': 'vit_plugin.models.heads.vit_head',
    }
)
__getattr__ = lazy_getattr(__name__, MODELS)
__all__ = [
    'ConvEmbed',
    'FlexiPatchEmbed',
    'MBConvEmbed',
    'PatchEmbed',
    'PooledResNetEmbed',
    'ResNetEmbed',
    'SimpleFPN',
    'TimmEmbed',
    'TokenPooling',
    'VisionTransformer',
    'load_weights',
]
