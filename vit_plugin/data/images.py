"""Load image files as they are displayed, and name the files that cannot be read."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import numpy as np
from mmengine import fileio
from pydantic import AfterValidator, Field

from anyfolder.pixels.bands import read_bands
from anyfolder.pixels.images import decode
from vit_plugin.arguments.fields import Backend, PositiveInt
from vit_plugin.data.unreadable import MACHINE_ERRORS, UnreadableError
from vit_plugin.errors import ConfigError
from vit_plugin.registry import TRANSFORMS, needed_class

LoadImageFromFile: Any = needed_class('LoadImage', 'mmcv.transforms:LoadImageFromFile')


@contextmanager
def name_unreadable_file(path: str, fault: str = 'cannot be read as an image') -> Iterator[None]:
    """Name the file in the error if the block fails.

    Args:
        path: the file.
        fault: what is wrong with it then.

    Raises:
        UnreadableError: in place of any exception in the block except an error of the machine, such
            as too many open files, which passes: the file may be fine.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, OSError) and error.errno in MACHINE_ERRORS:
            raise
        reason = ' '.join(str(error).split()).rstrip('.') or type(error).__name__
        raise UnreadableError(
            f'{path!r} {fault} ({reason}); replace the file, or take it out of the data set.',
            path,
            reason,
        ) from error


def read_encoded(path: str, backend_args: Backend) -> bytes:
    """Read the encoded image."""
    if os.path.exists(path) and not os.path.isfile(path):  # opening a pipe would block
        raise ValueError('it is not a regular file')
    content = fileio.get(path, backend_args=backend_args)
    if not content:
        raise ValueError('the file is empty')
    return content


def _check_ascending(values: Sequence[float]) -> Sequence[float]:
    if values[0] >= values[1]:
        raise ValueError('Values should be (lower, upper)')
    return values


# The lower and upper pixel value that become 0 and 255.
Window = Annotated[
    Sequence[float], Field(min_length=2, max_length=2), AfterValidator(_check_ascending)
]


def apply_window(values: np.ndarray, window: Window) -> np.ndarray:
    """Map the values of a window to 0 to 255, in float32, and clip those outside."""
    lower, upper = window
    return np.clip((values.astype(np.float32) - lower) * (255 / (upper - lower)), 0, 255)


@TRANSFORMS.register_module()
class LoadImage(LoadImageFromFile):
    """``LoadImageFromFile`` that names the file in errors and also applies AVIF orientation.

    Args:
        window: the lower and the upper value of the file that become 0 and 255, in uint8, or with
            ``to_float32`` without rounding. Values outside are clipped. It is for images of more
            than 8 bits, such as ``(0, 4095)`` for 12 bits. Without it, 8 bits are read.
        bands: number of bands of images in NumPy's format or TIFF, whose values are read as they
            are, in float32, see :mod:`anyfolder.pixels.bands`. Without it, photographs are read.
        **kwargs: arguments of ``LoadImageFromFile``.

    Raises:
        ConfigError: if there is a window with another ``imdecode_backend`` than ``'cv2'``, or with
            bands, or if there are bands with a setting of photographs.
    """

    renamed_arguments = {'file_client_args': 'backend_args=...'}

    def __init__(
        self, window: Window | None = None, bands: PositiveInt | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.window, self.bands = window, bands
        if window and bands:
            raise ConfigError(
                f'{type(self).__name__}: a window is for photographs, but bands keep their values '
                'for the mean and std of the data_preprocessor; leave out one of them.'
            )
        is_plain = self.color_type in ('color', 'unchanged') and (
            self.imdecode_backend in ('cv2', 'tifffile')
        )
        if bands and not is_plain:
            raise ConfigError(
                f'{type(self).__name__}: color_type and imdecode_backend are for photographs, but '
                'bands are read as they are; leave them out.'
            )
        if window and self.imdecode_backend != 'cv2':
            raise ConfigError(
                f'{type(self).__name__}: a window needs values of all bits, which '
                f'imdecode_backend={self.imdecode_backend!r} does not read; leave that out.'
            )

    def transform(self, results: dict) -> dict | None:
        try:
            image = self.load(results['img_path'])
        except ConfigError:
            if self.ignore_empty:
                return None
            raise
        return dict(results, img=image, img_shape=image.shape[:2], ori_shape=image.shape[:2])

    def load(self, path: str) -> np.ndarray:
        """The image (height, width, channels).

        Raises:
            ConfigError: if the file cannot be read as an image.
        """
        with name_unreadable_file(path):
            content = read_encoded(path, self.backend_args)
            if self.bands:
                return read_bands(content, self.bands)
            if self.imdecode_backend == 'cv2':
                image = decode(content, self.color_type, keep_depth=self.window is not None)
            else:
                reader = needed_class('imdecode_backend', 'mmcv:imfrombytes')
                image = reader(content, self.color_type, backend=self.imdecode_backend)
        if self.window:
            image = apply_window(image, self.window)
            # By default uint8, the only dtype that Pillow resizes.
            return image if self.to_float32 else np.rint(image).astype(np.uint8)
        return image.astype(np.float32) if self.to_float32 else image


@TRANSFORMS.register_module()
class LoadCachedImage(LoadImage):
    """:class:`LoadImage` that keeps decoded images in memory, for folders of small images.

    Every worker has its own cache of uint8 images. Set ``persistent_workers=True`` in the data
    loader. The caches need workers x images x height x width x 3 bytes of memory.

    Args:
        *args, **kwargs: see :class:`LoadImage`. Values in float32 need four times the memory.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._images: dict[str, np.ndarray] = {}

    def load(self, path: str) -> np.ndarray:
        if path not in self._images:
            self._images[path] = super().load(path)
        return self._images[path].copy()  # later steps may write into the image
