"""The first part of a backbone, from the image to tokens: patches, or a CNN and then patches."""

from .build import build_stem
from .conv import ConvEmbed
from .flexi import FlexiPatchEmbed
from .mbconv import MBConvEmbed
from .patch import PatchEmbed
from .pooled_resnet import PooledResNetEmbed
from .resnet import ResNetEmbed
from .stem import Stem, StemCfg
from .timm_cnn import TimmEmbed

__all__ = [
    'ConvEmbed',
    'FlexiPatchEmbed',
    'MBConvEmbed',
    'PatchEmbed',
    'PooledResNetEmbed',
    'ResNetEmbed',
    'Stem',
    'StemCfg',
    'TimmEmbed',
    'build_stem',
]
