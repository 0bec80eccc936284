import io
from pathlib import Path

import cv2
import numpy as np
import pytest
from image_kinds import bomb
from PIL import Image, ImageOps

from vit_plugin.errors import ConfigError
from vit_plugin.files.images import (
    check_complete,
    decode,
    image_files,
    is_image,
    read_image,
    seen_size,
)


def test_folders_are_their_images_in_order(tmp_path):
    photo = str(tmp_path / 'photo.png')
    cv2.imwrite(photo, np.zeros((4, 6, 3), dtype=np.uint8))
    folder = tmp_path / 'folder'
    folder.mkdir()
    (folder / 'below').mkdir()
    for name in ('b.JPG', 'a.png', 'notes.txt', 'below/c.png', '._a.png', 'Thumbs.db'):
        (folder / name).touch()
    names = ('a.png', 'b.JPG', 'below/c.png')
    assert image_files([photo, str(folder)]) == [photo, *(str(folder / name) for name in names)]
    with pytest.raises(ConfigError, match="There is no image 'none'"):
        image_files(['none'])


def test_what_is_no_image_is_named(tmp_path):
    path = tmp_path / 'no.png'
    path.write_text('no image')
    with pytest.raises(ConfigError, match=r"no\.png' cannot be read"):
        read_image(path)


@pytest.mark.parametrize('orientation', range(1, 9))
@pytest.mark.parametrize('form', ['JPEG', 'PNG', 'WEBP', 'TIFF', 'AVIF'])
def test_every_format_is_read_as_it_is_seen(tmp_path, form, orientation):
    pixels = np.zeros((40, 100, 3), np.uint8)
    pixels[:20], pixels[:, :10] = 255, (255, 0, 0)
    exif, file = Image.Exif(), io.BytesIO()
    exif[0x0112] = orientation
    Image.fromarray(pixels).save(file, form, exif=exif)
    wanted = np.asarray(ImageOps.exif_transpose(Image.open(file)).convert('RGB'))[..., ::-1].astype(
        int
    )
    found = decode(file.getvalue())
    assert found.shape == wanted.shape
    assert np.abs(found - wanted).mean() < 3
    assert seen_size(file.getvalue()) == wanted.shape[1::-1]
    path = tmp_path / 'without a suffix'
    path.write_bytes(file.getvalue())
    assert is_image(path)
    assert np.array_equal(read_image(path), found)


def test_heic_is_read_by_its_plugin(tmp_path):
    heif = pytest.importorskip('pillow_heif')
    exif = Image.Exif()
    exif[0x0112] = 6
    image = heif.from_pillow(Image.new('RGB', (40, 20), (200, 10, 10)))
    image.save(tmp_path / 'photo.jpg', exif=exif.tobytes(), quality=90)
    assert seen_size(tmp_path / 'photo.jpg') == (20, 40)
    found = read_image(tmp_path / 'photo.jpg')
    assert found.shape == (40, 20, 3)
    assert np.abs(found[20, 10].astype(int) - (10, 10, 200)).max() < 8


def test_pixels_are_bounded_before_they_take_memory(tmp_path):
    (tmp_path / 'bomb.png').write_bytes(bomb())
    with pytest.raises(
        ConfigError,
        match=r'bomb.png. cannot be read \(it has too many pixels; if that is intended, raise',
    ):
        read_image(tmp_path / 'bomb.png')


FORMATS_OF_FILES = ['JPEG', 'PNG', 'WEBP', 'TIFF', 'BMP', 'GIF', 'JPEG2000', 'AVIF', 'PPM']


def smooth(folder: Path, form: str) -> Path:
    """A photograph in this form."""
    values = np.random.default_rng(0).integers(0, 255, (6, 8, 3)).astype(np.uint8)
    path = folder / 'x'
    Image.fromarray(np.kron(values, np.ones((16, 16, 1), np.uint8))).save(path, form)
    return path


@pytest.mark.parametrize('form', FORMATS_OF_FILES)
def test_a_file_that_breaks_off_is_none(tmp_path, form):
    """yolov5#916, SKU110K#23: the header is there."""
    path = smooth(tmp_path, form)
    content = path.read_bytes()
    check_complete(path)
    for share in (0.5, 0.95):
        path.write_bytes(content[: int(share * len(content))])
        with pytest.raises((ValueError, OSError, SyntaxError)):  # of Pillow for AVIF
            check_complete(path)


@pytest.mark.parametrize('form', ['JPEG', 'PNG', 'GIF', 'BMP', 'WEBP', 'JPEG2000'])
def test_more_bytes_behind_a_complete_file(tmp_path, form):
    path = smooth(tmp_path, form)
    path.write_bytes(path.read_bytes() + bytes(64))
    check_complete(path)


def test_a_jpeg_without_its_last_byte_is_read(tmp_path):
    content = smooth(tmp_path, 'JPEG').read_bytes()
    (tmp_path / 'x').write_bytes(content[:-1])
    check_complete(tmp_path / 'x')
    for color_type in ('color', 'grayscale'):
        assert (decode(content, color_type) == decode(content[:-1], color_type)).all()
