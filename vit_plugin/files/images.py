"""The one image reader: which files are images, their sizes and pixels. Without torch, for ONNX."""

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import BinaryIO, NamedTuple

import cv2
import numpy as np
from PIL import Image, ImageOps

from vit_plugin.errors import ConfigError, first_line, needed_by

from .bands import Source, opened, read_bands, shape_of
from .volume_slices import SLICE_NAME, file_and_number, is_sliced, read_slice, slices_of

# The suffixes of formats that are read. A file with another suffix is an image if its content is.
IMAGE_SUFFIXES = (
    '.jpg',
    '.jpeg',
    '.jpe',
    '.jfif',
    '.png',
    '.bmp',
    '.webp',
    '.tif',
    '.tiff',
    '.avif',
    '.gif',
    '.heic',
    '.heif',
    '.jp2',
    '.ppm',
    '.pgm',
    '.pbm',
)
# Pillow's names of these formats, without HEIC. A file of another one, such as PSD or PDF, is no
# photograph.
IMAGE_FORMATS = ('JPEG', 'PNG', 'BMP', 'WEBP', 'TIFF', 'AVIF', 'GIF', 'JPEG2000', 'PPM')
INTERPOLATIONS = dict(  # OpenCV's, by the frameworks' names
    nearest=cv2.INTER_NEAREST,
    bilinear=cv2.INTER_LINEAR,
    bicubic=cv2.INTER_CUBIC,
    area=cv2.INTER_AREA,
    lanczos=cv2.INTER_LANCZOS4,
)
# Marks of a JPEG: of its start, of each scan, and of its end.
JPEG_START, JPEG_SCAN, JPEG_END = b'\xff\xd8', b'\xff\xda', b'\xff\xd9'
PROGRESSIVE = b'\xff\xc2'  # the mark of one whose scans are ever finer
GRAY = 128  # of the pixels that a JPEG lacks
HEIC_BRANDS = (b'heic', b'heix', b'heim', b'heis', b'hevc', b'mif1', b'msf1')
# What operating systems leave in folders.
OS_METADATA = (
    'thumbs.db',
    'desktop.ini',
    '__macosx',
    '@eadir',  # thumbnails of Synology
    '$recycle.bin',
    'system volume information',
    'lost+found',
)
PIXEL_LAYOUT = 'pixels (height, width, 3) in BGR, from 0 to 255, as uint8'
ORIENTATION_TAG = 0x0112  # EXIF tag
ON_ITS_SIDE = range(5, 9)  # its values of an image that is stored so
# The first and the last bytes of complete files; more may stand behind them.
FIRST_AND_LAST_BYTES = {
    JPEG_START: JPEG_END,
    b'\x89PNG': b'IEND\xaeB`\x82',
    b'GIF8': b'\0;',
    b'\0\0\0\x0cjP': b'\xff\xd9',
}
# The first bytes of formats that say their length, where, and what to add to it.
LENGTHS = {b'BM': (2, 0), b'RIFF': (4, 8)}
COLOR_TYPES = {
    'color': cv2.IMREAD_COLOR,
    'grayscale': cv2.IMREAD_GRAYSCALE,
    'unchanged': cv2.IMREAD_UNCHANGED,
    'color_ignore_orientation': cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION,
    'grayscale_ignore_orientation': cv2.IMREAD_GRAYSCALE | cv2.IMREAD_IGNORE_ORIENTATION,
}


def is_os_metadata(path: Path | os.DirEntry[str]) -> bool:
    """True if an operating system left this file: hidden ones, ``._*`` and ``Thumbs.db``."""
    return path.name.startswith('.') or path.name.lower() in OS_METADATA


def is_image(path: Path) -> bool:
    """Return whether this is a regular file that is an image by its suffix or content.

    Opening a regular file does not block.
    """
    if is_os_metadata(path) or not path.is_file():
        return False
    return path.suffix.lower() in IMAGE_SUFFIXES or _is_image_inside(path)


def _is_image_inside(path: Path) -> bool:
    try:
        seen_size(path)
    except Exception:  # noqa: BLE001  whatever a decoder trips over
        return False
    return True


def image_files(paths: Sequence[str]) -> list[str]:
    """The image files among these paths, with folders searched recursively and sorted by name.

    Volumes are their slices, see :mod:`~vit_plugin.files.volume_slices`.

    Raises:
        ConfigError: if a path does not exist, or if a folder has no images.
    """
    files: list[str] = []
    for path in map(Path, paths):
        if path.is_dir():
            below = path.rglob('*')
            found = sorted(str(file) for file in below if is_image(file) or is_sliced(file))
            if not found:
                raise ConfigError(
                    f'There are no images in the folder {str(path)!r}, whose names end in '
                    f'{", ".join(IMAGE_SUFFIXES)}.'
                )
            files += chain.from_iterable(map(slices_of, found))
        elif Path(file_and_number(str(path))[0]).is_file():
            files += slices_of(str(path))
        else:
            raise ConfigError(f'There is no image {str(path)!r}.')
    return files


class Header(NamedTuple):
    """What the header of an image says.

    Attributes:
        size: width and height as displayed (with the orientation applied).
        bands: their number, 0 of a photograph.
        bits: of a value of a photograph: 8, 16 or 32.
        orientation: in EXIF, 1 of an image that is stored as it is seen.
    """

    size: tuple[int, int]
    bands: int = 0
    bits: int = 0
    orientation: int = 1


def header_of(source: Source) -> Header:
    """The header of an image, of which no more is read.

    Raises:
        ValueError: if it is not an image, or has more pixels than ``PIL.Image.MAX_IMAGE_PIXELS``
            allows.
        OSError: if the file cannot be read.
        MissingExtraError: for HEIC without pillow-heif.
    """
    with opened(source) as file:
        if of_bands := shape_of(file):
            return Header((of_bands[1], of_bands[0]), of_bands[2])
        with _photograph(file) as image:
            (width, height), orientation = image.size, _orientation(image)
            bits = 32 if image.mode in ('I', 'F') else 8
            if ';16' in f'{image.mode} {getattr(image, "tile", "")}':
                bits = 16
    size = (height, width) if orientation in ON_ITS_SIDE else (width, height)
    return Header(size, 0, bits, orientation)


def seen_size(source: Source) -> tuple[int, int]:
    """Width and height of an image as displayed, see :func:`header_of`."""
    return header_of(source).size


def has_end(file: BinaryIO) -> bool:
    """True if the last bytes, or the length, are those of a complete photograph.

    Of formats that have no such mark it is False, and only decoding shows what is missing.
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
        and int.from_bytes(start[place : place + 4], 'little') + more <= length
        for first, (place, more) in LENGTHS.items()
    )


def _orientation(image: Image.Image) -> int:
    # PNG would be decoded to search for an orientation behind the pixels. Pillow turns TIFF itself.
    return image.getexif().get(ORIENTATION_TAG, 1) if 'exif' in image.info else 1


@contextmanager
def _photograph(source: Source) -> Iterator[Image.Image]:
    """The image, of which Pillow has read the header."""
    with opened(source) as file:
        start = file.read(12)
        file.seek(0)
        if start[4:8] == b'ftyp' and start[8:] in HEIC_BRANDS:
            with needed_by('an image in HEIC'):
                import pillow_heif
            yield pillow_heif.open_heif(file).to_pillow()
            return
        try:
            with warnings.catch_warnings():
                # An error at twice the number of pixels.
                warnings.simplefilter('ignore', Image.DecompressionBombWarning)
                image = Image.open(file, formats=IMAGE_FORMATS)
        except Image.DecompressionBombError as error:
            raise ValueError(
                'it has too many pixels; if that is intended, raise PIL.Image.MAX_IMAGE_PIXELS'
            ) from error
        except Image.UnidentifiedImageError as error:
            raise ValueError('it is not an image, or of an unknown format') from error
        yield image


def decode(content: bytes, color_type: str | int = 'color', deep: bool = False) -> np.ndarray:
    """Decode an image as it is seen, to BGR (H, W, 3).

    OpenCV decodes what it also turns by the orientation in EXIF. Pillow decodes the others, AVIF
    and HEIC. A JPEG without the mark of its end is read, as by Pillow with
    ``LOAD_TRUNCATED_IMAGES``, unless pixels are missing, which both would leave gray or coarse.

    Args:
        content: the encoded image.
        color_type: a key of :data:`COLOR_TYPES`, or a flag of OpenCV.
        deep: whether values of more than 8 bits stay as they are. Otherwise the upper 8 of 16 bits
            are read, which leaves 16 shades of an image of 12 bits.

    Raises:
        ValueError: if the content is not a whole photograph, or with ``deep`` is AVIF or HEIC.
    """
    if of_bands := shape_of(content):
        raise ValueError(f'it has {of_bands[2]} bands, which LoadImage(bands=...) reads')
    flag = COLOR_TYPES[color_type] if isinstance(color_type, str) else color_type
    flag |= cv2.IMREAD_ANYDEPTH if deep else 0
    lacks_end = content.startswith(JPEG_START) and _lacks_end(content)
    if lacks_end:  # OpenCV 5 reads nothing without it
        rest = JPEG_END[content.endswith(b'\xff') :]
        lacks_scans = PROGRESSIVE in content and rest == JPEG_END
        content += rest
    if content[4:8] == b'ftyp':
        if deep:
            raise ValueError('of AVIF and HEIC only 8 bits are read, and a window needs all')
        return _decoded_by_pillow(content, flag)
    image = cv2.imdecode(np.frombuffer(content, np.uint8), flag)
    if image is None and deep:  # values of 32 bits, which OpenCV does not convert
        image = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_UNCHANGED)
        if image is not None and image.ndim == 2 and flag & cv2.IMREAD_COLOR:
            image = np.stack([image] * 3, axis=-1)
    if image is None:
        raise ValueError('the file is damaged, or of an unknown format, such as 32-bit values')
    if lacks_end and (lacks_scans or (_corners(image) == GRAY).all(axis=-1).any()):
        raise ValueError('the file breaks off, and the rest of the image would be gray or coarse')
    return image


def _lacks_end(content: bytes) -> bool:
    """True if a JPEG breaks off within its pixels. What follows its end does not count."""
    if JPEG_END in content[-16:]:
        return False
    return content.rfind(JPEG_END) < content.rfind(JPEG_SCAN)


def _corners(image: np.ndarray) -> np.ndarray:
    """The pixels at the corners (2, 2, channels); the last one of the file is among them."""
    return np.atleast_3d(image)[np.ix_((0, -1), (0, -1))]


def _decoded_by_pillow(content: bytes, flag: int) -> np.ndarray:
    with _photograph(content) as image:
        turned = image if flag & cv2.IMREAD_IGNORE_ORIENTATION else ImageOps.exif_transpose(image)
        pixels = cv2.cvtColor(np.asarray(turned.convert('RGB')), cv2.COLOR_RGB2BGR)
    return pixels if flag & cv2.IMREAD_COLOR else cv2.cvtColor(pixels, cv2.COLOR_BGR2GRAY)


def read_image(image: str | Path | np.ndarray) -> np.ndarray:
    """The pixels (H, W, 3) of an image file as it is seen, in BGR.

    Of an image of bands they are its values, see :func:`~vit_plugin.files.bands.read_bands`, and of
    a slice of a volume, too.

    Raises:
        ConfigError: if the file cannot be read, or has more pixels than
            ``PIL.Image.MAX_IMAGE_PIXELS`` allows, or see :func:`of_array`.
    """
    if isinstance(image, np.ndarray):
        return of_array(image)
    if not isinstance(image, (str, Path)):
        raise ConfigError(
            f'{type(image).__name__} is not an image; give a file, or {PIXEL_LAYOUT}.'
        )
    try:
        if SLICE_NAME.fullmatch(str(image)):
            return read_slice(*file_and_number(str(image)))[..., None]
        content = Path(image).read_bytes()
        seen_size(content)  # before memory is taken for the pixels
        return read_bands(content) if shape_of(content) else decode(content)
    except Exception as error:  # whatever a decoder trips over
        raise ConfigError(
            f'The image {str(image)!r} cannot be read ({first_line(error)}).'
        ) from error


def of_array(array: np.ndarray) -> np.ndarray:
    """An array as :func:`read_image` gives it: a photograph in uint8, or values in float32.

    Args:
        array: pixels (H, W, 3) in BGR, or gray (H, W) or (H, W, 1), in uint8, or values of bands
            (H, W, bands).

    Raises:
        ConfigError: if it is something else. What 1 means as a float or in 16 bits is not known.
    """
    if array.ndim not in (2, 3) or not array.size or array.dtype.kind not in 'uif':
        raise ConfigError(
            f'An array {array.shape} of {array.dtype} is not an image; give {PIXEL_LAYOUT}, or '
            'values of bands (height, width, bands).'
        )
    array = array[..., None] if array.ndim == 2 else array
    if array.dtype == np.uint8:
        return np.repeat(array, 3, axis=2) if array.shape[2] == 1 else array
    if array.shape[2] == 3 and array.dtype != np.float32:
        raise ConfigError(
            f'An image has pixels of {array.dtype}, whose range is unknown; give {PIXEL_LAYOUT}.'
        )
    return array.astype(np.float32, copy=False)


def edge_size(width: int, height: int, edge: str, length: int) -> tuple[int, int]:
    """The size with this edge at a length, as with MMPretrain's ``ResizeEdge``.

    torchvision's ``Resize`` of one number does the same.
    """
    by_width = dict(short=width < height, long=width > height, width=True, height=False)[edge]
    if by_width:
        return length, int(length * height / width)
    return int(length * width / height), length


def resized(
    image: np.ndarray, size: Sequence[int], interpolation: str, backend: str = 'cv2'
) -> np.ndarray:
    """An image (H, W, C) of another width and height, as the frameworks resize it.

    Args:
        image: its pixels, for Pillow in uint8.
        size: the new width and height.
        interpolation: a key of :data:`INTERPOLATIONS`, or one of Pillow's methods.
        backend: ``'cv2'`` or ``'pillow'``.
    """
    if backend == 'pillow':
        method = Image.Resampling[interpolation.upper()]
        return np.array(Image.fromarray(image).resize([*size], method))
    return cv2.resize(image, size, interpolation=INTERPOLATIONS[interpolation])


def walk_files(
    folder: Path,
    skip: Callable[[Path], bool] = lambda place: False,
    repeated: Callable[[Path, Path], None] = lambda link, first: None,
) -> Iterator[Path]:
    """All files below a folder except OS leftovers, sorted. Links lead into no folder twice.

    Hidden folders are left out.

    Args:
        folder: where to begin.
        skip: whether a folder in it is left out.
        repeated: called with each link to a folder that was read already, and with that folder.
    """
    seen = {parent.resolve(): parent for parent in folder.absolute().parents}

    def below(place: Path) -> Iterator[Path]:
        first = seen.setdefault(place.resolve(), place)
        if first is not place:
            repeated(place, first)
            return
        with os.scandir(place) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
        for entry in found:
            if is_os_metadata(entry):
                continue
            path = place / entry.name
            if entry.is_dir():
                if not skip(path):
                    yield from below(path)
            elif entry.is_file():
                yield path

    yield from below(folder)
