"""Image files: which files are, and their pixels. Without torch, for what runs without it."""

from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np

from vit_plugin.errors import ConfigError, first_line

IMAGE_SUFFIXES = ('.jpg', '.jpeg', '.png', '.bmp', '.webp', '.tif', '.tiff', '.avif', '.ppm')


def is_image(path: Path) -> bool:
    """Whether this is a regular file, so that opening it does not wait, with the suffix of an image, and not hidden."""
    return path.name.lower().endswith(IMAGE_SUFFIXES) and not path.name.startswith('.') and path.is_file()


def image_files(paths: Sequence[str]) -> list[str]:
    """The image files among these paths, and in the folders among them and below, in order of their names.

    Raises:
        ConfigError: if a path does not exist, or if a folder has no images.
    """
    files: list[str] = []
    for path in map(Path, paths):
        if path.is_dir():
            found = sorted(str(file) for file in path.rglob('*') if is_image(file))
            if not found:
                raise ConfigError(f'There are no images in the folder {str(path)!r}, whose names end in '
                                  f'{", ".join(IMAGE_SUFFIXES)}.')
            files += found
        elif path.is_file():
            files.append(str(path))
        else:
            raise ConfigError(f'There is no image {str(path)!r}.')
    return files


def read_image(image: str | Path | np.ndarray) -> np.ndarray:
    """The pixels (H, W, 3) of an image file, in BGR. An array is returned as it is.

    Raises:
        ConfigError: if the file cannot be read.
    """
    if isinstance(image, np.ndarray):
        return image
    try:
        pixels = cv2.imdecode(np.fromfile(image, np.uint8), cv2.IMREAD_COLOR)
    except Exception as error:  # whatever a decoder trips over
        raise ConfigError(f'The image {str(image)!r} cannot be read ({first_line(error)}).') from error
    if pixels is None:
        raise ConfigError(f'The image {str(image)!r} cannot be read.')
    return pixels
