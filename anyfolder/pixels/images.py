"""The one image reader of the package: the pixels of an image file as displayed.

*Bands* are the channels of a multispectral image. Any other image, gray or in color, is called a
photograph.
"""

from pathlib import Path

import cv2
import numpy as np
from PIL import ImageOps

from anyfolder.errors import InputError, first_line
from anyfolder.limits import read_within

from .bands import multiband_shape, read_bands
from .image_headers import (
    JPEG_END,
    JPEG_SCAN,
    JPEG_START,
    check_decoding_cost,
    displayed_size,
    open_photograph,
)
from .volume_slices import SLICE_NAME, file_and_number, read_slice

PROGRESSIVE = b'\xff\xc2'  # the marker of a progressive JPEG
MISSING_PIXEL = 128  # the gray with which decoders fill missing pixels of a JPEG
PIXEL_LAYOUT = 'pixels (height, width, 3) in BGR, from 0 to 255, as uint8'
COLOR_TYPES = {  # OpenCV's flags by the names of mmcv
    'color': cv2.IMREAD_COLOR,
    'grayscale': cv2.IMREAD_GRAYSCALE,
    'unchanged': cv2.IMREAD_UNCHANGED,
    'color_ignore_orientation': cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION,
    'grayscale_ignore_orientation': cv2.IMREAD_GRAYSCALE | cv2.IMREAD_IGNORE_ORIENTATION,
}


def decode(content: bytes, color_type: str | int = 'color', keep_depth: bool = False) -> np.ndarray:
    """Decode a photograph, by default as displayed and to BGR (H, W, 3) of 8 bits.

    OpenCV decodes the formats for which it applies the EXIF orientation; Pillow decodes the others,
    AVIF and HEIC. A JPEG that only lacks its end marker is accepted, as by Pillow with
    ``LOAD_TRUNCATED_IMAGES``. If pixels are missing, it is rejected, since OpenCV and Pillow would
    fill them with gray, or give a coarse image.

    Args:
        content: the encoded image.
        color_type: a key of :data:`COLOR_TYPES`, or an OpenCV flag. With ``'unchanged'`` and the
            types that ignore the orientation, the image is decoded as stored, except TIFF, which
            OpenCV always rotates. AVIF and HEIC lose their alpha in any case.
        keep_depth: whether values of more than 8 bits are kept. Otherwise the upper 8 of 16 bits
            are read, which leaves 16 shades of a 12-bit image.

    Raises:
        ValueError: if the content is not a complete photograph, has too many pixels or scans, or is
            AVIF or HEIC with ``keep_depth``.
    """
    if shape := multiband_shape(content):
        raise ValueError(f'it has {shape[2]} bands; set bands={shape[2]} to read them')
    check_decoding_cost(content)
    flag = COLOR_TYPES[color_type] if isinstance(color_type, str) else color_type
    flag |= cv2.IMREAD_ANYDEPTH if keep_depth else 0
    lacks_end = content.startswith(JPEG_START) and _lacks_end(content)
    may_lack_scans = False
    if lacks_end:  # OpenCV 5 reads nothing without the end marker
        missing = JPEG_END[1:] if content.endswith(b'\xff') else JPEG_END
        # A progressive JPEG that lacks its last scans is coarse. If the first byte of the marker is
        # there, all scans were written.
        may_lack_scans = PROGRESSIVE in content and missing == JPEG_END
        content += missing
    if content[4:8] == b'ftyp':  # AVIF or HEIC
        if keep_depth:
            raise ValueError(
                'AVIF and HEIC are read with 8 bits only, and all bits are needed here; save it '
                'as PNG or TIFF'
            )
        return _decode_with_pillow(content, flag)
    image = cv2.imdecode(np.frombuffer(content, np.uint8), flag)
    if image is None and keep_depth:  # values of 32 bits, which OpenCV does not convert
        image = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_UNCHANGED)
        if image is not None and image.ndim == 2 and flag & cv2.IMREAD_COLOR:
            image = np.stack([image] * 3, axis=-1)
    if image is None:
        raise ValueError('the file is damaged, or in an unknown format, such as 32-bit values')
    # If pixels are missing, the last block is among them. In any orientation, it is at a corner.
    if lacks_end and (may_lack_scans or (_corners(image) == MISSING_PIXEL).all(axis=-1).any()):
        raise ValueError('the file is truncated, and the rest of the image would be gray or coarse')
    return image


def _lacks_end(content: bytes) -> bool:
    """True if the last scan of a JPEG has no end marker after it."""
    if JPEG_END in content[-16:]:  # spares nearly all files the search below
        return False
    # A thumbnail before the pixels has an end marker, too.
    return content.rfind(JPEG_END) < content.rfind(JPEG_SCAN)


def _corners(image: np.ndarray) -> np.ndarray:
    """The pixels at the corners (2, 2, channels)."""
    return np.atleast_3d(image)[np.ix_((0, -1), (0, -1))]


def _decode_with_pillow(content: bytes, flag: int) -> np.ndarray:
    """The pixels by an OpenCV flag: (H, W, 3) in BGR, or gray (H, W).

    ``IMREAD_UNCHANGED`` is -1, with all bits set. So it ignores the orientation, as in OpenCV.
    """
    with open_photograph(content) as image:
        as_stored = flag & cv2.IMREAD_IGNORE_ORIENTATION
        image = image if as_stored else ImageOps.exif_transpose(image)
        pixels = cv2.cvtColor(np.asarray(image.convert('RGB')), cv2.COLOR_RGB2BGR)
    return pixels if flag & cv2.IMREAD_COLOR else cv2.cvtColor(pixels, cv2.COLOR_BGR2GRAY)


def read_image(image: str | Path | np.ndarray) -> np.ndarray:
    """The pixels (H, W, 3) of an image as displayed, in BGR.

    For an image with bands, these are its values (H, W, bands), see
    :func:`~anyfolder.pixels.bands.read_bands`; for a slice of a volume, its values (H, W, 1).

    Args:
        image: an image file, the name of a slice (see :mod:`~anyfolder.pixels.volume_slices`), or
            an array, see :func:`pixels_of_array`.

    Raises:
        InputError: if the file cannot be read, or has more pixels than
            ``PIL.Image.MAX_IMAGE_PIXELS`` allows, or if an array is not an image.
    """
    if isinstance(image, np.ndarray):
        return pixels_of_array(image)
    if not isinstance(image, (str, Path)):
        raise InputError(f'{type(image).__name__} is not an image; give a file, or {PIXEL_LAYOUT}.')
    try:
        if SLICE_NAME.fullmatch(str(image)):
            return read_slice(*file_and_number(str(image)))[..., None]
        content = read_within(image, 'bytes of an image')
        displayed_size(content)  # raises if there are too many, before memory is allocated
        return read_bands(content) if multiband_shape(content) else decode(content)
    except Exception as error:  # decoders raise any error
        raise InputError(
            f'The image {str(image)!r} cannot be read ({first_line(error)}).'
        ) from error


def pixels_of_array(array: np.ndarray) -> np.ndarray:
    """An array as :func:`read_image` gives it.

    In uint8, gray is repeated to (H, W, 3), and other arrays stay unchanged. Any other type becomes
    values of bands (H, W, bands) in float32, with one band for (H, W).

    Args:
        array: pixels (H, W, 3) in BGR, or gray (H, W) or (H, W, 1), in uint8, or values of bands
            (H, W, bands) or (H, W).

    Raises:
        InputError: if it is empty or not numeric, if it does not have two or three axes, or if it
            has three channels and is neither uint8 nor float32: it may be a photograph, whose range
            is unknown. In float32 it has bands, as :func:`read_image` gives them.
    """
    if array.ndim not in (2, 3) or not array.size or array.dtype.kind not in 'uif':
        raise InputError(
            f'An array {array.shape} of {array.dtype} is not an image; give {PIXEL_LAYOUT}, or '
            'values of bands (height, width, bands).'
        )
    array = array[..., None] if array.ndim == 2 else array
    if array.dtype == np.uint8:
        return np.repeat(array, 3, axis=2) if array.shape[2] == 1 else array
    if array.shape[2] == 3 and array.dtype != np.float32:
        raise InputError(
            f'An image has pixels of {array.dtype}, whose range is unknown; give {PIXEL_LAYOUT}.'
        )
    return array.astype(np.float32, copy=False)
