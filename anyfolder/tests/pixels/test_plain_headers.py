"""Headers of plain JPEG and PNG, compared with those that Pillow reads."""

import io

import numpy as np
import pytest
from PIL import Image

from anyfolder.pixels import image_headers
from anyfolder.pixels.image_headers import header_of
from anyfolder.pixels.plain_headers import HEAD_BYTES, may_be_image, plain_header

ROTATED = b'Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0'
MODES = '1', 'L', 'P', 'RGB', 'RGBA', 'LA', 'I;16', 'CMYK'
FORMATS = 'JPEG', 'PNG', 'BMP', 'GIF', 'TIFF', 'WEBP', 'JPEG2000', 'PPM'
OPTIONS = (
    {},
    dict(progressive=True),
    dict(exif=ROTATED),
    dict(icc_profile=b'x' * 3000),
    dict(icc_profile=b'x' * 90_000),  # longer than HEAD_BYTES
)


def _encoded(mode: str, file_format: str, options: dict) -> bytes | None:
    """An image of 21 x 13 pixels, or None if the format has no such mode."""
    values = np.arange(13 * 21).reshape(13, 21)
    if mode == 'I;16':
        image = Image.fromarray(values.astype(np.uint16))
    else:
        image = Image.fromarray(values.astype(np.uint8)).convert(mode)
    file = io.BytesIO()
    try:
        image.save(file, file_format, **options)
    except (OSError, ValueError):
        return None
    return file.getvalue()


@pytest.mark.parametrize('file_format', FORMATS)
@pytest.mark.parametrize('mode', MODES)
def test_plain_headers_agree_with_pillow(mode, file_format, monkeypatch):
    files = [file for options in OPTIONS if (file := _encoded(mode, file_format, options))]
    headers = [plain_header(file[:HEAD_BYTES]) for file in files]
    monkeypatch.setattr(image_headers, 'plain_header', lambda start: None)  # so Pillow reads them
    for file, header in zip(files, headers, strict=True):
        assert may_be_image(file[:12])
        if header:
            wanted = header_of(file)
            assert ((header.width, header.height), header.bits) == (wanted.size, wanted.bits)
            assert (wanted.bands, wanted.orientation) == (0, 1)


@pytest.mark.parametrize('file_format', ['JPEG', 'PNG'])
def test_plain_images_are_read_without_pillow(file_format):
    file = _encoded('RGB', file_format, {})
    assert plain_header(file) == (21, 13, 8)
    assert plain_header(_encoded('RGB', file_format, dict(exif=ROTATED))) is None
    assert not any(plain_header(file[:end]) for end in range(33))  # incomplete headers


def test_damaged_png_headers_are_left_to_pillow():
    file = bytearray(_encoded('RGB', 'PNG', {}))
    file[19] ^= 1  # a bit of the width
    assert plain_header(bytes(file)) is None


@pytest.mark.parametrize(
    'text', [b'0 0.5 0.5 0.2', b'<annotation>', b'{"images": [', b'version http']
)
def test_text_is_not_an_image(text):
    assert not may_be_image(text.ljust(12))


@pytest.mark.parametrize(('largest', 'bits'), [(255, 8), (511, 16), (1023, 16), (65535, 16)])
def test_bits_of_a_tall_ppm_are_those_of_its_largest_value(largest, bits):
    """Its height of four digits is not that value."""
    pixels = bytes(3 * 1200 * bits // 8)
    assert header_of(b'P6 1 1200 %d\n' % largest + pixels).bits == bits
