"""Datasets and transforms that the framework lacks."""

# isort: off
from vit_plugin.registry import DATASETS, TRANSFORMS  # first, since it says what to install where MMEngine is missing
# isort: on

from .digits import Digits
from .samplers import DefaultSampler, InfiniteSampler

__all__ = ['DefaultSampler', 'Digits', 'InfiniteSampler']

with TRANSFORMS.needing_an_extra('LoadCachedImage', 'LoadImage'):
    from .images import LoadCachedImage, LoadImage

    __all__ += ['LoadCachedImage', 'LoadImage']

with TRANSFORMS.needing_an_extra('LoadRandomResizedCrop'):
    from .loading import LoadRandomResizedCrop

    __all__ += ['LoadRandomResizedCrop']

with TRANSFORMS.needing_an_extra('RandAugment', 'RandomErasing'):
    from .rand_augment import RandAugment, RandomErasing

    __all__ += ['RandAugment', 'RandomErasing']

with DATASETS.needing_an_extra('HuggingFaceImages', 'WebShards'):
    from .hugging_face import HuggingFaceImages
    from .web_dataset import WebShards

    __all__ += ['HuggingFaceImages', 'WebShards']


def __getattr__(name: str) -> type:
    for registry in (TRANSFORMS, DATASETS):
        if name in registry.missing:
            raise registry.missing[name]
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
