"""Datasets, samplers and transforms that the frameworks lack.

Classes that need another framework or an extra are imported on first use.
"""

# isort: off
# This import comes first, since its error says what to install if MMEngine is missing.
from vit_plugin.registry import DATASETS, TRANSFORMS, lazy_getattr
# isort: on

from .digits import Digits
from .samplers import DefaultSampler, InfiniteSampler
from .subset import stratified_subset

# Transforms of vit_plugin.detection are here too, since pipelines name them vit_plugin.X.
TRANSFORMS.register_lazily(
    {
        'CopyBlend': 'vit_plugin.detection.mixed_images',
        'CutTile': 'vit_plugin.detection.tiled_images',
        'FloorCenterCrop': 'vit_plugin.data.center_crop',
        'LoadCachedImage': 'vit_plugin.data.images',
        'LoadImage': 'vit_plugin.data.images',
        'LoadRandomResizedCrop': 'vit_plugin.data.load_image',
        'RandomMix': 'vit_plugin.detection.mixed_images',
    }
)
DATASETS.register_lazily(
    {
        'HuggingFaceImages': 'vit_plugin.data.hugging_face_images',
        'TiledCocoDataset': 'vit_plugin.detection.tiled_images',
    }
)
__getattr__ = lazy_getattr(__name__, TRANSFORMS, DATASETS)
__all__ = ['DefaultSampler', 'Digits', 'InfiniteSampler', 'stratified_subset']
