"""Load images at the resolution of the crop."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import cv2
import numpy as np
from pydantic import Field
from typing_extensions import TypedDict, Unpack

from anyfolder.pixels.image_headers import displayed_size
from anyfolder.pixels.images import decode
from vit_plugin.arguments.fields import ASCENDING, Backend, Positive, PositiveInt, Size
from vit_plugin.errors import ConfigError
from vit_plugin.files.resizing import resize_image
from vit_plugin.registry import TRANSFORMS, needed_class

from .images import name_unreadable_file, read_encoded

RandomResizedCrop: Any = needed_class(
    'LoadRandomResizedCrop', 'mmpretrain.datasets.transforms:RandomResizedCrop'
)

# Factors by which libjpeg can reduce the size while decoding, largest first.
REDUCTIONS = {
    8: cv2.IMREAD_REDUCED_COLOR_8,
    4: cv2.IMREAD_REDUCED_COLOR_4,
    2: cv2.IMREAD_REDUCED_COLOR_2,
}
PAIR = Field(min_length=2, max_length=2)
AreaFraction = Annotated[float, Field(gt=0, le=1)]


class CropOptions(TypedDict, total=False):
    """Arguments of MMPretrain's ``RandomResizedCrop``."""

    crop_ratio_range: Annotated[Sequence[AreaFraction], PAIR, ASCENDING]
    aspect_ratio_range: Annotated[Sequence[Positive], PAIR, ASCENDING]
    max_attempts: PositiveInt
    interpolation: Literal['nearest', 'bilinear', 'bicubic', 'area', 'lanczos']
    backend: Literal['cv2', 'pillow']


@TRANSFORMS.register_module()
class LoadRandomResizedCrop(RandomResizedCrop):
    """``LoadImageFromFile`` and ``RandomResizedCrop`` in one, with the crop chosen before decoding.

    If the crop is at least twice as large as the result, a JPEG is decoded at a half, a quarter or
    an eighth of its size. That is faster, and smoother than skipping pixels. The crops are those of
    ``RandomResizedCrop``, rounded to the decoded pixels.

    Args:
        scale: size of the result in pixels, (height, width) or the side of a square.
        backend_args: arguments of MMEngine's file backend.
        **kwargs: arguments of ``RandomResizedCrop``: ``crop_ratio_range``, ``aspect_ratio_range``,
            ``interpolation``, ...

    Raises:
        ConfigError: if the backend lacks the interpolation.
    """

    def __init__(
        self, scale: Size, backend_args: Backend = None, **kwargs: Unpack[CropOptions]
    ) -> None:
        super().__init__(scale, **kwargs)
        self.backend_args = backend_args
        if self.backend == 'pillow' and self.interpolation == 'area':
            raise ConfigError(
                f"{type(self).__name__}: Pillow has no interpolation='area'; take another one, or "
                "backend='cv2'."
            )

    def transform(self, results: dict) -> dict:
        path = results['img_path']
        with name_unreadable_file(path):
            content = read_encoded(path, self.backend_args)
            width, height = displayed_size(content)
        top, left, crop_height, crop_width = self.rand_crop_params(
            np.broadcast_to(np.uint8(0), (height, width))
        )
        flag = cv2.IMREAD_COLOR
        for reduction, reduced_flag in REDUCTIONS.items():  # the largest that leaves enough pixels
            reduced_height, reduced_width = crop_height / reduction, crop_width / reduction
            if reduced_height >= self.scale[0] and reduced_width >= self.scale[1]:
                flag = reduced_flag
                break
        with name_unreadable_file(path):
            image = decode(content, flag)
        # Not 1 / reduction: reduced sides are rounded up.
        scale_y, scale_x = image.shape[0] / height, image.shape[1] / width
        image = image[
            round(scale_y * top) : round(scale_y * (top + crop_height)),
            round(scale_x * left) : round(scale_x * (left + crop_width)),
        ]
        image = resize_image(image, self.scale[::-1], self.interpolation, self.backend)
        return dict(results, img=image, img_shape=image.shape[:2], ori_shape=(height, width))
