"""Datasets and transforms that the framework lacks."""

from contextlib import suppress

# isort: off
from vit_plugin import registry  # noqa: F401  first, since it says what to install where MMEngine is missing
# isort: on

from .digits import Digits

__all__ = ['Digits']

with suppress(Exception):  # MMPretrain is missing or does not fit its neighbours, which is no concern of a detector's
    from .loading import LoadCachedImage, LoadRandomResizedCrop
    from .rand_augment import RandAugment, RandomErasing

    __all__ += ['LoadCachedImage', 'LoadRandomResizedCrop', 'RandAugment', 'RandomErasing']
