"""Image files of every format are decoded as displayed; truncated and huge ones raise."""

import io

import cv2
import numpy as np
import pytest
from bombs import bomb
from PIL import Image, ImageOps
from rejection import rejects

from anyfolder.pixels.image_files import is_image
from anyfolder.pixels.image_headers import displayed_size, has_end
from anyfolder.pixels.images import decode, read_image


def test_error_names_the_file(tmp_path):
    path = tmp_path / 'no.png'
    path.write_text('no image')
    with rejects(r"no\.png' cannot be read"):
        read_image(path)


@pytest.mark.parametrize('orientation', range(1, 9))
@pytest.mark.parametrize('form', ['JPEG', 'PNG', 'WEBP', 'TIFF', 'AVIF'])
def test_every_format_is_read_as_displayed(tmp_path, form, orientation):
    pixels = np.zeros((40, 100, 3), np.uint8)
    pixels[:20], pixels[:, :10] = 255, (255, 0, 0)
    exif, file = Image.Exif(), io.BytesIO()
    exif[0x0112] = orientation
    Image.fromarray(pixels).save(file, form, exif=exif)
    displayed = ImageOps.exif_transpose(Image.open(file)).convert('RGB')
    wanted = np.asarray(displayed)[..., ::-1].astype(int)  # BGR
    found = decode(file.getvalue())
    assert found.shape == wanted.shape
    assert np.abs(found - wanted).mean() < 3  # gray levels of lossy formats
    assert displayed_size(file.getvalue()) == wanted.shape[1::-1]
    path = tmp_path / 'without a suffix'
    path.write_bytes(file.getvalue())
    assert is_image(path)
    assert np.array_equal(read_image(path), found)


def test_heic_is_read_by_its_plugin(tmp_path):
    heif = pytest.importorskip('pillow_heif')
    exif = Image.Exif()
    exif[0x0112] = 6  # rotated by 90 degrees
    image = heif.from_pillow(Image.new('RGB', (40, 20), (200, 10, 10)))
    image.save(tmp_path / 'photo.jpg', exif=exif.tobytes(), quality=90)
    assert displayed_size(tmp_path / 'photo.jpg') == (20, 40)
    found = read_image(tmp_path / 'photo.jpg')
    assert found.shape == (40, 20, 3)
    assert np.abs(found[20, 10].astype(int) - (10, 10, 200)).max() < 8


def test_too_many_pixels_raise_before_they_take_memory(tmp_path):
    (tmp_path / 'bomb.png').write_bytes(bomb())
    with rejects(r'bomb.png. cannot be read \(it has too many pixels; if that is intended, raise'):
        read_image(tmp_path / 'bomb.png')


FORMATS_OF_FILES = ['JPEG', 'PNG', 'WEBP', 'TIFF', 'BMP', 'GIF', 'JPEG2000', 'AVIF', 'PPM']


def encoded(form: str = 'JPEG', orientation: int = 1, **options) -> bytes:
    """An image of 128 x 96 pixels in this format, of squares in random colors."""
    values = np.random.default_rng(0).integers(0, 255, (6, 8, 3)).astype(np.uint8)
    exif, file = Image.Exif(), io.BytesIO()
    exif[0x0112] = orientation
    if orientation > 1:
        options['exif'] = exif
    image = Image.fromarray(np.kron(values, np.ones((16, 16, 1), np.uint8)))
    image.save(file, form, **options)
    return file.getvalue()


@pytest.mark.parametrize('form', FORMATS_OF_FILES)
def test_truncated_files_raise(form):
    """The headers of such files are complete, so only decoding shows that pixels are missing.

    Reported in yolov5#916 and SKU110K#23.
    """
    content = encoded(form)
    assert decode(content).shape == (96, 128, 3)
    for fraction in (0.5, 0.95):
        cut = content[: int(fraction * len(content))]
        assert not has_end(io.BytesIO(cut))
        with pytest.raises((ValueError, OSError, SyntaxError)):  # for AVIF, Pillow's own
            decode(cut)


@pytest.mark.parametrize('form', ['JPEG', 'PNG', 'GIF', 'BMP', 'WEBP', 'JPEG2000'])
@pytest.mark.parametrize('trailing', [b'', bytes(64)])
def test_complete_files_may_have_trailing_bytes(form, trailing):
    content = encoded(form) + trailing
    if not trailing:
        assert has_end(io.BytesIO(content))
    assert decode(content).shape == (96, 128, 3)


@pytest.mark.parametrize('orientation', range(1, 9))
@pytest.mark.parametrize('color_type', ['color', 'grayscale', cv2.IMREAD_REDUCED_COLOR_2])
def test_jpeg_without_end_marker_is_read_if_it_has_all_pixels(orientation, color_type):
    content = encoded('JPEG', orientation)
    for lost in (1, 2):  # of the two bytes of the end marker
        assert (decode(content, color_type) == decode(content[:-lost], color_type)).all()
    for lost in (100, len(content) // 3):
        with pytest.raises(ValueError, match='is truncated'):
            decode(content[:-lost], color_type)


def test_progressive_jpeg_without_end_marker():
    """Without the marker, a scan may be missing."""
    content = encoded(progressive=True)
    # FF is still there, so the scan was complete
    assert (decode(content) == decode(content[:-1])).all()
    with pytest.raises(ValueError, match='is truncated'):
        decode(content[:-2])


def test_jpeg_end_is_told_from_thumbnails_and_trailing_bytes():
    """A thumbnail before the pixels has an end marker, too, and phones add bytes after them."""
    content = encoded()
    assert (decode(content) == decode(content + bytes(100))).all()
    with_thumbnail = encoded(comment=encoded())
    with pytest.raises(ValueError, match='is truncated'):
        decode(with_thumbnail[: -len(content) // 3])
