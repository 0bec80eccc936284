"""Images from files: decoded no finer than the crop needs, or once for all epochs."""

import io
from typing import Any

import cv2
import mmcv
import numpy as np
from mmcv.transforms import LoadImageFromFile
from mmengine import fileio
from PIL import Image

from vit_plugin.errors import needed_by
from vit_plugin.registry import TRANSFORMS

with needed_by('LoadRandomResizedCrop'):
    from mmpretrain.datasets.transforms import RandomResizedCrop

# How many times smaller libjpeg can decode in its transform, coarsest first.
REDUCTIONS = {8: cv2.IMREAD_REDUCED_COLOR_8, 4: cv2.IMREAD_REDUCED_COLOR_4, 2: cv2.IMREAD_REDUCED_COLOR_2}
ORIENTATION = 0x0112  # EXIF tag; from 5 on the image is stored on its side


def image_shape(content: bytes) -> tuple[int, int]:
    """Height and width of an encoded image as it will be shown, from its header."""
    with Image.open(io.BytesIO(content)) as image:
        on_its_side = 'exif' in image.info and image.getexif().get(ORIENTATION, 1) >= 5
        return image.size if on_its_side else image.size[::-1]


@TRANSFORMS.register_module()
class LoadRandomResizedCrop(RandomResizedCrop):
    """``LoadImageFromFile`` and ``RandomResizedCrop`` in one step: the crop first, then a decoding that suits it.

    Where the crop is at least twice the wanted size, a JPEG is decoded at a half, a quarter or an eighth: faster, and
    smoother than skipping pixels. The crops are ``RandomResizedCrop``'s own, rounded to the pixels
    that were decoded.

    Args:
        scale: size of the result in pixels, (height, width) or the side of a square.
        backend_args: of MMEngine's file backend.
        **kwargs: of ``RandomResizedCrop``: ``crop_ratio_range``, ``aspect_ratio_range``, ``interpolation``, ...
    """

    def __init__(self, scale: Any, backend_args: dict | None = None, **kwargs: Any) -> None:
        super().__init__(scale, **kwargs)
        self.backend_args = backend_args

    def transform(self, results: dict) -> dict:
        content = fileio.get(results['img_path'], backend_args=self.backend_args)
        height, width = image_shape(content)
        top, left, crop_height, crop_width = self.rand_crop_params(np.broadcast_to(np.uint8(0), (height, width)))
        reduction = next((times for times in REDUCTIONS
                          if crop_height >= times * self.scale[0] and crop_width >= times * self.scale[1]), 1)
        image = cv2.imdecode(np.frombuffer(content, np.uint8), REDUCTIONS.get(reduction, cv2.IMREAD_COLOR))
        y, x = image.shape[0] / height, image.shape[1] / width  # not 1 / reduction: a reduced side is rounded up
        image = image[round(y * top):round(y * (top + crop_height)), round(x * left):round(x * (left + crop_width))]
        image = mmcv.imresize(image, self.scale[::-1], interpolation=self.interpolation, backend=self.backend)
        return dict(results, img=image, img_shape=image.shape[:2], ori_shape=(height, width))


@TRANSFORMS.register_module()
class LoadCachedImage(LoadImageFromFile):
    """``LoadImageFromFile`` that keeps what it decoded, for folders of small images.

    Every worker keeps its own, as uint8: give the data loader ``persistent_workers=True``, and see that
    workers x images x height x width x 3 bytes fit the memory.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._kept: dict[str, np.ndarray] = {}

    def transform(self, results: dict) -> dict | None:
        path = results['img_path']
        if path not in self._kept:
            loaded = super().transform(results)
            if loaded is None:
                return None
            self._kept[path] = loaded['img']
        image = self._kept[path].copy()  # later steps may write into it
        return dict(results, img=image, img_shape=image.shape[:2], ori_shape=image.shape[:2])
