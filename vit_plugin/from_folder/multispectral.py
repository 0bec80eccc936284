"""Multispectral images in a recipe: their reader, statistics and stem.

A multispectral image has any number of bands instead of three colors. Everything that bands change
in a config is here. ``bands`` is 0 for photographs.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from anyfolder.pixels.images import read_image
from anyfolder.readers.listing import Listing
from anyfolder.sampling import evenly_spaced
from vit_plugin.arguments.fields import Section
from vit_plugin.config import data_workers

from .starting_point import StartingPoint

STATISTICS_IMAGES = 500  # largest number of images that mean and deviation are computed from
COLOR_TRANSFORMS = ('PhotoMetricDistortion', 'RandAugment')  # transforms that need three channels


def adapt_to_bands(pipeline: Sequence[Section], bands: int) -> list[Section]:
    """A pipeline adapted to multispectral images. Its first step reads an image.

    Color augmentation is removed, and nothing resizes with Pillow, which has no multispectral
    images.
    """
    return [
        dict(type='vit_plugin.LoadImage', bands=bands),
        *(
            {**step, 'backend': 'cv2'} if step.get('backend') == 'pillow' else step
            for step in pipeline[1:]
            if step['type'] not in COLOR_TRANSFORMS
        ),
    ]


def multispectral_backbone(start: StartingPoint, size: int, bands: int) -> Section:
    """The arguments of :meth:`StartingPoint.backbone`, with a stem for this number of bands.

    Raises:
        ConfigError: if there are bands, and the backbone is another library's module, whose stem
            takes three channels.
    """
    backbone = start.backbone(size)
    if not bands:
        return backbone
    if start.wrapped:
        raise start.wrapped_error(f'--data: a training on images of {bands} bands')
    given = backbone.get('patch_embed') or {}  # a saved config may have None
    stem = dict(given, in_channels=bands)
    if stem.get('whitened'):  # principal components of 2 x 2 pixels, with both signs
        stem['channels'] = (8 * bands, *stem['channels'][1:])
    return dict(backbone, patch_embed=stem)


def band_normalization(start: StartingPoint, listing: Listing) -> Section:
    """The mean and standard deviation of each channel, as arguments of a ``data_preprocessor``.

    For bands, they are computed from at most 500 training images, unless the weights state theirs.

    Raises:
        ConfigError: if an image cannot be read, or if images differ in their number of bands.
    """
    if listing.bands in (0, len(start.saved_settings.get('mean', ()))):
        return start.normalization
    paths = [listing.train[i].path for i in evenly_spaced(len(listing.train), STATISTICS_IMAGES)]
    with ThreadPoolExecutor(data_workers()) as pool:
        count, total, squares = np.sum(list(pool.map(_moments, paths)), axis=0)
    mean = total / count
    std = np.sqrt(np.maximum(squares / count - mean**2, 0))
    std[std < 1e-6 * np.abs(mean) + 1e-12] = 1.0  # a constant band
    return {
        key: [float(f'{value:.5g}') for value in values]
        for key, values in dict(mean=mean, std=std).items()
    }


def _moments(path: Path) -> np.ndarray:
    """The number of pixels, the sum and the sum of squares of each band of an image (3, bands)."""
    pixels = read_image(path)
    flat = pixels.reshape(-1, pixels.shape[2]).astype(np.float64)
    return np.stack([np.full(flat.shape[1], len(flat)), flat.sum(0), (flat**2).sum(0)])
