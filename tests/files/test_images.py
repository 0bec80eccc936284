import io

import cv2
import numpy as np
import pytest
from image_kinds import bomb
from PIL import Image, ImageOps

from vit_plugin.errors import ConfigError
from vit_plugin.files.images import decode, image_files, is_image, read_image, seen_size


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
        match=r'bomb.png. cannot be read \(it has too many pixels; if that is right, raise',
    ):
        read_image(tmp_path / 'bomb.png')
