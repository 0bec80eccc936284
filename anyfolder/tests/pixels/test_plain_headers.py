"""Headers of plain JPEG and PNG, compared with those that Pillow reads."""

import io

import numpy as np
import pytest
from PIL import Image

from anyfolder.pixels import image_headers
from anyfolder.pixels.image_headers import header_of
from anyfolder.pixels.plain_headers import HEAD, may_be_image, plain_header

ON_ITS_SIDE = b'Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0'
MODES = '1', 'L', 'P', 'RGB', 'RGBA', 'LA', 'I;16', 'CMYK'
FORMATS = 'JPEG', 'PNG', 'BMP', 'GIF', 'TIFF', 'WEBP', 'JPEG2000', 'PPM'
OPTIONS = (
    {},
    dict(progressive=True),
    dict(exif=ON_ITS_SIDE),
    dict(icc_profile=b'x' * 3000),
    dict(icc_profile=b'x' * 90_000),
)


def _encoded(mode: str, kind: str, options: dict) -> bytes | None:
    deep = mode == 'I;16'
    values = np.arange(13 * 21).reshape(13, 21)
    image = Image.fromarray(values.astype(np.uint16 if deep else np.uint8))
    file = io.BytesIO()
    try:
        (image if deep else image.convert(mode)).save(file, kind, **options)
    except (OSError, ValueError):  # a format without this mode
        return None
    return file.getvalue()


@pytest.mark.parametrize('kind', FORMATS)
@pytest.mark.parametrize('mode', MODES)
def test_a_plain_header_is_that_of_pillow(mode, kind, monkeypatch):
    files = [file for each in OPTIONS if (file := _encoded(mode, kind, each))]
    plain = [plain_header(file[:HEAD]) for file in files]
    monkeypatch.setattr(image_headers, 'plain_header', lambda start: None)
    for file, own in zip(files, plain, strict=True):
        assert may_be_image(file[:12])
        if own:
            header = header_of(file)
            assert (header.size, header.bits) == ((own.width, own.height), own.bits)
            assert (header.bands, header.orientation) == (0, 1)


@pytest.mark.parametrize('kind', ['JPEG', 'PNG'])
def test_plain_images_are_read_without_pillow(kind):
    file = _encoded('RGB', kind, {})
    assert plain_header(file) == (21, 13, 8)
    assert plain_header(_encoded('RGB', kind, dict(exif=ON_ITS_SIDE))) is None
    assert not any(plain_header(file[:end]) for end in range(33))


def test_a_header_of_png_that_is_damaged_is_left_to_pillow():
    file = bytearray(_encoded('RGB', 'PNG', {}))
    file[19] ^= 1  # of the width
    assert plain_header(bytes(file)) is None


@pytest.mark.parametrize(
    'start', [b'0 0.5 0.5 0.2', b'<annotation>', b'{"images": [', b'version http']
)
def test_text_is_no_image(start):
    assert not may_be_image(start.ljust(12))
