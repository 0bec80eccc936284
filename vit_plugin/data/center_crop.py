"""Crop the middle of an image, as image processors of transformers do."""

from collections.abc import Sequence
from typing import Any

from vit_plugin.arguments.fields import Size
from vit_plugin.files.resizing import center_crop
from vit_plugin.registry import TRANSFORMS


@TRANSFORMS.register_module()
class FloorCenterCrop:
    """Center crop that begins at ``floor((side - crop) / 2)``, as in transformers.

    ``CenterCrop`` of mmcv, torchvision and timm rounds half to even, and so begins one pixel later
    if ``side - crop`` is 3 modulo 4.

    Args:
        crop_size: width and height, or one number for both. A smaller side stays as it is.
    """

    def __init__(self, crop_size: Size) -> None:
        sides = (crop_size, crop_size) if isinstance(crop_size, int) else crop_size
        self.crop_size: Sequence[int] = tuple(sides)

    def __call__(self, results: dict[str, Any]) -> dict[str, Any]:
        """Crop the entry ``img``, pixels (H, W, C)."""
        image = center_crop(results['img'], self.crop_size, rounds_down=True)
        return dict(results, img=image, img_shape=image.shape[:2])
