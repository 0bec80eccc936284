"""Multispectral images, whose bands are not red, green and blue: NumPy arrays (.npy) and TIFF.

Any other image, gray or in color, is called a photograph.
"""

import io
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np

from anyfolder.errors import InputError, needed_by
from anyfolder.limits import describe_excess

from .arrays import header_in, length_of, read_array
from .tiff_pages import (
    EXTRA_SAMPLES_TAG,
    HEIGHT_TAG,
    PHOTOMETRIC_TAG,
    SAMPLES_TAG,
    TIFFS,
    WIDTH_TAG,
    Tags,
    tags_of_pages,
)

Source = str | Path | bytes | BinaryIO  # a path, the content of a file, or an open file

NUMPY = b'\x93NUMPY'
# Values of TIFF tags in files with bands: photographs can also have palettes or CMYK.
GRAY_OR_RGB, ALPHA, LAB = (0, 1, 2), (1, 2), (8, 9, 10)
STRETCHED_PERCENTILES = (2, 98)  # percentiles of a band that become black and white in a picture


def multiband_shape(source: Source) -> tuple[int, int, int] | None:
    """Height, width and number of bands of a multispectral image, from its header.

    None for a photograph or another file.

    A TIFF is a photograph if it is gray or has three colors, with or without alpha, or if it has a
    palette or other color models. Several gray pages of equal size are bands.

    Args:
        source: the file.

    Raises:
        ValueError: if a NumPy array or a TIFF is not an image, for a TIFF in CIE L*a*b*, or for a
            file that claims more values than the limit, or more than it holds.
        OSError: if the file cannot be read.
    """
    with open_source(source) as file:
        start = file.read(8)
        file.seek(0)
        shape = None
        if start.startswith(NUMPY):
            shape = _numpy_shape(file)
        elif start.startswith(TIFFS):
            shape = _tiff_shape(file)
        if shape and (excess := describe_excess('values in an image of bands', math.prod(shape))):
            raise ValueError(f'it {excess}')
        return shape


def read_bands(source: Source, num_bands: int | None = None) -> np.ndarray:
    """The unchanged values (H, W, bands) of an image with bands, in float32.

    Args:
        source: the file.
        num_bands: the number of bands. Default: any.

    Raises:
        ValueError: if it has no bands or not ``num_bands`` bands, if a value is not finite, and see
            :func:`multiband_shape`.
        MissingExtraError: for TIFF without tifffile.
    """
    shape = multiband_shape(source)
    if shape is None or shape[2] != (num_bands or shape[2]):
        found = f'has {shape[2]} bands' if shape else 'is an image'
        raise ValueError(f'it {found}, and not {num_bands or "several"} bands')
    with open_source(source) as file:
        is_numpy = file.read(len(NUMPY)) == NUMPY
        file.seek(0)
        values = (_bands_last(read_array(file)) if is_numpy else _read_tiff(file)).astype(
            np.float32
        )
    if not np.isfinite(values).all():
        raise ValueError('it has values that are not finite; replace them with numbers')
    return values


def check_bands(pixels: np.ndarray, num_bands: int, name: str = '') -> None:
    """Raise an ``InputError`` if pixels (H, W, C) or (H, W) do not have ``num_bands`` bands."""
    bands = pixels.shape[2] if pixels.ndim > 2 else 1
    if bands != num_bands:
        raise InputError(
            f'{repr(name) if name else "An image"} has {bands} bands or colors, but the model '
            f'takes {num_bands}; give one like those that it was trained on.'
        )


def check_photograph(pixels: np.ndarray, name: str = '') -> None:
    """Raise an ``InputError`` if pixels are not those of a photograph, from 0 to 255."""
    if pixels.dtype != np.uint8:
        raise InputError(
            f'{repr(name) if name else "An image"} has pixels of {pixels.dtype}, but the model '
            'takes photographs; give them from 0 to 255, as uint8.'
        )


def as_photograph(pixels: np.ndarray) -> np.ndarray:
    """A picture (H, W, 3) in BGR, uint8, from pixels (H, W, C).

    A photograph stays unchanged. The first three bands of an image are shown as blue, green and
    red, each with its values stretched from 0 to 255; of fewer bands, the first one as gray.
    """
    if pixels.dtype == np.uint8 and pixels.shape[2:] == (3,):
        return pixels
    shown = pixels[..., : 3 if pixels.shape[2] >= 3 else 1]
    low, high = np.percentile(shown, STRETCHED_PERCENTILES, axis=(0, 1))
    stretched = (shown - low) * (255 / np.maximum(high - low, 1e-6))
    return np.repeat(stretched.clip(0, 255).astype(np.uint8), 3 // shown.shape[2], axis=2)


@contextmanager
def open_source(source: Source) -> Iterator[BinaryIO]:
    """The file, positioned at its start. An open file stays open."""
    if isinstance(source, (str, Path)):
        with open(source, 'rb') as file:
            yield file
        return
    file = io.BytesIO(source) if isinstance(source, bytes) else source
    file.seek(0)
    yield file


def _numpy_shape(file: BinaryIO) -> tuple[int, int, int]:
    """Height, width and number of bands of a NumPy array, see :func:`multiband_shape`."""
    shape, dtype, _ = header_in(file, length_of(file))
    if len(shape) != 3 or not all(shape) or dtype.kind not in 'uif':
        raise ValueError(f'an array of the shape {shape} and type {dtype} is not (H, W, bands)')
    without_memory = np.broadcast_to(np.uint8(0), shape)  # one value, viewed as the whole array
    return _bands_last(without_memory).shape


def _bands_last(values: np.ndarray) -> np.ndarray:
    """An array (H, W, bands), or (bands, H, W) if that axis is shorter, as (H, W, bands)."""
    return np.moveaxis(values, 0, -1) if values.shape[0] < values.shape[-1] else values


def _tiff_shape(file: BinaryIO) -> tuple[int, int, int] | None:
    """Height, width and number of bands of a TIFF, see :func:`multiband_shape`."""
    pages = list(tags_of_pages(file))
    if not pages or not {HEIGHT_TAG, WIDTH_TAG} <= pages[0].keys():
        raise ValueError('it is a TIFF without an image')
    size, samples = _size(pages[0]), _samples(pages[0])
    photometric = pages[0].get(PHOTOMETRIC_TAG, (-1,))[0]
    if photometric in LAB:
        raise ValueError('it has colors of CIE L*a*b*; save it as RGB')
    if photometric not in GRAY_OR_RGB:
        return None
    if len(pages) > 1 and samples == 1:  # a band on each page, and no smaller overviews
        alike = all((_size(page), _samples(page)) == (size, 1) for page in pages)
        return (*size, len(pages)) if alike else None
    bands = samples - sum(kind in ALPHA for kind in pages[0].get(EXTRA_SAMPLES_TAG, ()))
    return None if bands < 2 or bands == 3 else (*size, bands)  # some files state too many extras


def _size(tags: Tags) -> tuple[int, int]:
    """Height and width, 0 if a page does not state them."""
    return tags.get(HEIGHT_TAG, (0,))[0], tags.get(WIDTH_TAG, (0,))[0]


def _samples(tags: Tags) -> int:
    """The number of values per pixel of a page, including alpha."""
    return tags.get(SAMPLES_TAG, (1,))[0]


def _read_tiff(file: BinaryIO) -> np.ndarray:
    """The values (H, W, bands): a band on each page, or the samples of one page without alpha."""
    with needed_by('A TIFF of bands'):
        import tifffile
    with tifffile.TiffFile(file) as tiff:
        page = tiff.pages.first
        if page.samplesperpixel == 1:
            return np.stack([page.asarray() for page in tiff.pages], axis=-1)
        values = np.moveaxis(page.asarray(), page.axes.index('S'), -1)
        colors = [kind not in ALPHA for kind in page.extrasamples]
        keep = [True] * (values.shape[-1] - len(colors)) + colors
    return values[..., keep]
