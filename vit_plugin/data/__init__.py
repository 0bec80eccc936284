"""Datasets and transforms that the framework lacks."""

# isort: off
# This import comes first, since its error says what to install if MMEngine is missing.
from vit_plugin.registry import DATASETS, TRANSFORMS, later_of
# isort: on

from .digits import Digits
from .samplers import DefaultSampler, InfiniteSampler
from .subset import stratified_subset

TRANSFORMS.import_later(
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
DATASETS.import_later(
    {
        'HuggingFaceImages': 'vit_plugin.data.hugging_face_images',
        'TiledCocoDataset': 'vit_plugin.detection.tiled_images',
    }
)
__getattr__ = later_of(__name__, TRANSFORMS, DATASETS)
__all__ = ['DefaultSampler', 'Digits', 'InfiniteSampler', 'stratified_subset']
