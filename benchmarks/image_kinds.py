"""Image files of many kinds, valid and broken, of one picture, to try readers with."""

import io
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
from bombs import bomb
from PIL import Image

HEIGHT, WIDTH = 48, 64
ORIENTATION = 0x0112  # EXIF's tag


def picture() -> Image.Image:
    """A picture without symmetry: red grows to the right, green downwards, blue in a corner."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    blue = np.where((y < 16) & (x < 16), 220, 40)
    return Image.fromarray(
        np.stack((x * 255 // WIDTH, y * 255 // HEIGHT, blue), axis=-1).astype(np.uint8)
    )


def saved(form: str, image: Image.Image | None = None, **options: object) -> bytes:
    """An image, by default the picture, as a file of Pillow's format ``form``."""
    file = io.BytesIO()
    (image or picture()).save(file, form, **options)
    return file.getvalue()


def oriented(form: str, orientation: int, **options: object) -> bytes:
    """The picture as a file with an orientation in its EXIF."""
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    return saved(form, exif=exif, **options)


def encoded_by_opencv(suffix: str, dtype: type, channels: int = 3) -> bytes:
    """The picture, or its green channel, as a file with this type of pixels."""
    # 257 maps 0 to 255 onto 0 to 65,535.
    pixels = np.asarray(picture())[..., ::-1].astype(dtype) * (257 if dtype is np.uint16 else 1)
    return cv2.imencode(suffix, pixels if channels == 3 else pixels[..., 1])[1].tobytes()


def valid_files() -> dict[str, bytes]:
    """Images that a reader must take: content by file name."""
    image = picture()
    alpha = image.convert('RGBA')  # opaque: the color behind it is not part of the file
    gray, palette = image.convert('L'), image.quantize(64)
    return {
        'jpeg.jpg': saved('JPEG', quality=95),
        'progressive.jpg': saved('JPEG', quality=95, progressive=True),
        'gray.jpg': saved('JPEG', gray, quality=95),
        'cmyk.jpg': saved('JPEG', image.convert('CMYK'), quality=95),
        'full-chroma.jpg': saved('JPEG', quality=95, subsampling=0),
        'JPEG.JPG': saved('JPEG', quality=95),
        'rgb.png': saved('PNG'),
        'rgba.png': saved('PNG', alpha),
        'gray.png': saved('PNG', gray),
        'gray-alpha.png': saved('PNG', alpha.convert('LA')),
        'palette.png': saved('PNG', palette),
        'bits.png': saved('PNG', image.convert('1')),
        'rgb16.png': encoded_by_opencv('.png', np.uint16),
        'gray16.png': encoded_by_opencv('.png', np.uint16, 1),
        'lossy.webp': saved('WEBP', quality=95),
        'lossless.webp': saved('WEBP', lossless=True),
        'alpha.webp': saved('WEBP', alpha, lossless=True),
        'still.gif': saved('GIF', palette),
        'moving.gif': saved('GIF', palette, save_all=True, append_images=[gray]),
        'rgb.bmp': saved('BMP'),
        'gray.bmp': saved('BMP', gray),
        'palette.bmp': saved('BMP', palette),
        'rgb.tiff': saved('TIFF'),
        'lzw.tif': saved('TIFF', compression='tiff_lzw'),
        'gray.tif': saved('TIFF', gray),
        'rgba.tif': saved('TIFF', alpha),
        'rgb16.tif': encoded_by_opencv('.tif', np.uint16),
        'pages.tif': saved('TIFF', save_all=True, append_images=[gray]),
        'rgb.ppm': saved('PPM'),
        'gray.pgm': saved('PPM', gray),
        'lossless.jp2': saved('JPEG2000'),
        'rgb.avif': saved('AVIF', quality=95),
        'png-in-name-only.jpg': saved('PNG'),
        'no suffix': saved('JPEG', quality=95),
        'Fuß 写真 #1.jpg': saved('JPEG', quality=95),
        **{f'exif{i}.jpg': oriented('JPEG', i, quality=95) for i in range(1, 9)},
        **{f'exif6.{form}': oriented(form, 6, lossless=True) for form in ('png', 'webp')},
        'exif6.avif': oriented('AVIF', 6, quality=95),
    }


def broken_files() -> dict[str, bytes | None]:
    """Files that a reader must reject: content by file name; None for a missing file."""
    jpeg, png, webp = saved('JPEG', quality=95), saved('PNG'), saved('WEBP', lossless=True)
    return {
        'empty.jpg': b'',
        'text.jpg': b'not an image',
        'page.jpg': b'<html>404</html>',
        'zeros.jpg': bytes(2000),
        'start.jpg': jpeg[:3],
        'header.jpg': jpeg[:300],
        'half.jpg': jpeg[: len(jpeg) - 400],
        'start.png': png[:20],
        'half.png': png[: len(png) // 2],
        'half.webp': webp[: len(webp) // 2],
        'half.gif': saved('GIF')[:300],
        'bomb.png': bomb(),
        'missing.jpg': None,
    }


def write(folder: Path) -> Iterator[tuple[str, bool]]:
    """Write all kinds. Yields the path of each, and whether it is a valid image."""
    for make_files, is_image in ((valid_files, True), (broken_files, False)):
        for name, content in make_files().items():
            if content is not None:
                (folder / name).write_bytes(content)
            yield str(folder / name), is_image
    (folder / 'folder.jpg').mkdir()
    (folder / 'link.jpg').symlink_to(folder / 'gone.jpg')
    yield from ((str(folder / name), False) for name in ('folder.jpg', 'link.jpg'))
