from .conv import ConvEmbed
from .mbconv import MBConvEmbed
from .patch import PatchEmbed
from .resnet import ResNetEmbed
from .stem import Stem, StemCfg
from .timm_cnn import TimmEmbed

__all__ = ['ConvEmbed', 'MBConvEmbed', 'PatchEmbed', 'ResNetEmbed', 'Stem', 'StemCfg', 'TimmEmbed']
