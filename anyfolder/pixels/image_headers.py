"""Read image headers, and check image files before they are decoded.

A photograph is any image without bands, see :mod:`.bands`.
"""

import io
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import BinaryIO, NamedTuple

from PIL import Image

from anyfolder.errors import needed_by
from anyfolder.limits import describe_excess, limit

from .bands import Source, multiband_shape, open_source
from .plain_headers import HEAD_BYTES, plain_header
from .tiff_pages import HEIGHT_TAG, TIFFS, WIDTH_TAG, tags_of_pages

# Pillow's names of the supported formats, without HEIC. Others, such as PSD or PDF, are not read.
IMAGE_FORMATS = ('JPEG', 'PNG', 'BMP', 'WEBP', 'TIFF', 'AVIF', 'GIF', 'JPEG2000', 'PPM')
DECODER_MEMORY = {'JPEG2000': 2}  # memory per pixel of a format's decoder relative to others
HEIC_BRANDS = (b'heic', b'heix', b'heim', b'heis', b'hevc', b'mif1', b'msf1')
ORIENTATION_TAG = 0x0112  # EXIF tag
ON_ITS_SIDE = range(5, 9)  # orientations of an image rotated by 90 degrees
SUBFILE_TAG = 254  # a TIFF tag; 1 marks a smaller copy of another image
# JPEG markers: of the start, of each scan, and of the end.
JPEG_START, JPEG_SCAN, JPEG_END = b'\xff\xd8', b'\xff\xda', b'\xff\xd9'
# The marker of a scan, with the length of its header and its number of components, 1 to 4. The
# marker alone can also occur by chance, such as in a thumbnail or in trailing bytes.
SCAN_HEADER = re.compile(rb'\xff\xda\0(?:\x08\x01|\x0a\x02|\x0c\x03|\x0e\x04)')
# The first and the last bytes of complete files, unless more bytes follow.
FIRST_AND_LAST_BYTES = {
    JPEG_START: JPEG_END,
    b'\x89PNG': b'IEND\xaeB`\x82',
    b'GIF8': b'\0;',
    b'\0\0\0\x0cjP': JPEG_END,
}
# By the first bytes of formats whose header states the length of the file: the position of that
# number, and what to add to it.
LENGTHS = {b'BM': (2, 0), b'RIFF': (4, 8)}
TOO_MANY = 'it has too many pixels; if that is intended, raise PIL.Image.MAX_IMAGE_PIXELS'


class Header(NamedTuple):
    """What the header of an image states.

    Attributes:
        size: width and height as displayed (with the orientation applied).
        bands: the number of bands, 0 for a photograph.
        bits: the bits per value of a photograph: 8, 16 or 32. 0 for bands.
        orientation: the EXIF orientation; 1 if the image is stored as displayed.
    """

    size: tuple[int, int]
    bands: int = 0
    bits: int = 0
    orientation: int = 1


def header_of(source: Source) -> Header:
    """The header of an image. No more of the file is read.

    Raises:
        ValueError: if it is not an image, or has more pixels than ``PIL.Image.MAX_IMAGE_PIXELS``
            allows.
        OSError: if the file cannot be read.
        MissingExtraError: for HEIC without pillow-heif.
    """
    with open_source(source) as file:
        if plain := plain_header(file.read(HEAD_BYTES)):
            check_pixels(plain.width, plain.height)
            return Header((plain.width, plain.height), bits=plain.bits)
        file.seek(0)
        if shape := multiband_shape(file):
            return Header((shape[1], shape[0]), bands=shape[2])
        with open_photograph(file) as image:
            (width, height), orientation = image.size, _orientation(image)
            bits = 32 if image.mode in ('I', 'F') else 8
            # Pillow shows 16 bits in the mode, as in I;16, or in the arguments of its decoder. For
            # PPM, which can have any bit depth, these end with the largest value.
            description = f'{image.mode} {image.format} {getattr(image, "tile", "")}'
            largest = re.search(r' PPM .*, (\d+)\)\)\]$', description)
            if ';16' in description or (largest and int(largest[1]) > 255):
                bits = 16
    size = (height, width) if orientation in ON_ITS_SIDE else (width, height)
    return Header(size, bits=bits, orientation=orientation)


def displayed_size(source: Source) -> tuple[int, int]:
    """Width and height of an image as displayed, see :func:`header_of`."""
    return header_of(source).size


def has_end(file: BinaryIO) -> bool:
    """True if the last bytes or the length are those of a complete photograph.

    False for formats without an end marker or a length, where only decoding shows what is missing,
    and for files with bytes after their end marker.
    """
    file.seek(0)
    start = file.read(12)
    length = file.seek(0, os.SEEK_END)
    file.seek(-min(length, 16), os.SEEK_END)
    end = file.read()
    return any(
        start.startswith(first) and end.endswith(last)
        for first, last in FIRST_AND_LAST_BYTES.items()
    ) or any(
        start.startswith(first)
        and int.from_bytes(start[position : position + 4], 'little') + addition <= length
        for first, (position, addition) in LENGTHS.items()
    )


def _orientation(image: Image.Image) -> int:
    """The EXIF orientation, from 1 (as displayed) to 8."""
    # Without an EXIF chunk before the pixels, Pillow would decode a whole PNG to look for one after
    # them. Pillow rotates TIFF itself.
    return image.getexif().get(ORIENTATION_TAG, 1) if 'exif' in image.info else 1


def check_pixels(width: int, height: int, times: float = 1) -> None:
    """Raise a ``ValueError`` if an image has too many pixels.

    The limit is twice ``PIL.Image.MAX_IMAGE_PIXELS``, as in Pillow itself.

    Args:
        width, height: the size in the header.
        times: the memory per pixel that decoding takes, relative to common formats.
    """
    max_pixels = Image.MAX_IMAGE_PIXELS
    if max_pixels is not None and width * height * times > 2 * max_pixels:
        raise ValueError(TOO_MANY)


def check_decoding_cost(content: bytes) -> None:
    """Raise a ``ValueError`` if decoding an image would take too much memory or time.

    Args:
        content: a file in any format of :data:`IMAGE_FORMATS`. A JPEG can have thousands of scans
            over all of its pixels.
    """
    if content.startswith(TIFFS):
        for tags in islice(tags_of_pages(io.BytesIO(content)), 1):
            check_pixels(tags.get(WIDTH_TAG, (0,))[0], tags.get(HEIGHT_TAG, (0,))[0])
        return
    with open_photograph(content):
        pass
    if content.startswith(JPEG_START) and content.count(JPEG_SCAN) > limit('scans of a JPEG'):
        scans = sum(1 for _ in SCAN_HEADER.finditer(content))
        if excess := describe_excess('scans of a JPEG', scans):
            raise ValueError(f'it {excess}')


@contextmanager
def open_photograph(source: Source) -> Iterator[Image.Image]:
    """Open a photograph by Pillow, which has read only its header.

    Raises:
        ValueError: if it is not an image, has too many pixels, or is a camera's raw file.
        MissingExtraError: for HEIC without pillow-heif.
    """
    with open_source(source) as file:
        start = file.read(12)
        file.seek(0)
        if start[4:8] == b'ftyp' and start[8:] in HEIC_BRANDS:
            with needed_by('an image in HEIC'):
                import pillow_heif
            content = pillow_heif.open_heif(file)
            check_pixels(*content.size)
            yield content.to_pillow()
            return
        try:
            with warnings.catch_warnings():
                # Pillow warns above its limit, and raises an error above twice that.
                warnings.simplefilter('ignore', Image.DecompressionBombWarning)
                image = Image.open(file, formats=IMAGE_FORMATS)
        except Image.DecompressionBombError as error:
            raise ValueError(TOO_MANY) from error
        except Image.UnidentifiedImageError as error:
            if start == b'version http':
                raise ValueError('it is a Git LFS pointer; run `git lfs pull`') from error
            raise ValueError('it is not an image, or in an unknown format') from error
        check_pixels(*image.size, DECODER_MEMORY.get(image.format or '', 1))
        if getattr(image, 'tag_v2', {}).get(SUBFILE_TAG) == 1:
            raise ValueError(
                "it begins with a smaller copy, as a camera's raw file; save it as JPEG"
            )
        yield image
