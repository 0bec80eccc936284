from .patch import PatchEmbed
from .resnet import ResNetEmbed
from .stem import Stem
from .timm_cnn import TimmEmbed

__all__ = ['PatchEmbed', 'ResNetEmbed', 'Stem', 'TimmEmbed']
