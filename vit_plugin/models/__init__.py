"""Backbones, necks, heads and a preprocessor. Only the parts for MMPretrain's classifiers need MMPretrain."""

# isort: off
from vit_plugin.registry import MODELS  # first, since it says what to install where MMEngine is missing
# isort: on

from .backbones import VisionTransformer, ViTAdapter
from .loading import load_weights
from .necks import SimpleFPN, TokenPooling
from .stems import ConvEmbed, FlexiPatchEmbed, MBConvEmbed, PatchEmbed, ResNetEmbed, TimmEmbed

__all__ = [
    'ConvEmbed', 'FlexiPatchEmbed', 'MBConvEmbed', 'PatchEmbed', 'ResNetEmbed', 'SimpleFPN', 'TimmEmbed',
    'TokenPooling', 'ViTAdapter', 'VisionTransformer', 'load_weights']

with MODELS.needing_an_extra('AugmentingPreprocessor'):
    from .data_preprocessor import AugmentingPreprocessor

    __all__ += ['AugmentingPreprocessor']

with MODELS.needing_an_extra('DistilledClassifier', 'DistilledViTClsHead', 'ViTClsHead'):
    from .heads import DistilledClassifier, DistilledViTClsHead, ViTClsHead

    __all__ += ['DistilledClassifier', 'DistilledViTClsHead', 'ViTClsHead']


def __getattr__(name: str) -> type:
    if name in MODELS.missing:
        raise MODELS.missing[name]
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
