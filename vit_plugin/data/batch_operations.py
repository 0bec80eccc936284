"""Operations on uint8 batches (B, C, H, W) on their device: those of MMPretrain's RandAugment.

An operation is two functions. The first draws random numbers for one image of a height and width,
on the CPU, as MMPretrain does. The second computes all images that drew this operation. ``t`` is
MMPretrain's transform, whose attributes both read. Images are in BGR.
"""

from collections.abc import Callable, Sequence
from math import ceil
from typing import Any

import cv2
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torchvision.transforms.v2 import functional as kernels

from vit_plugin.errors import ConfigError

GRAY_WEIGHTS = (0.114, 0.587, 0.299)  # for BGR, the order of the framework's images
# On the CPU, even if the module is first imported within `torch.device('meta')`.
RAMP = torch.arange(256.0, device='cpu')  # all values of a pixel
# Pillow's kernel ImageFilter.SMOOTH.
SMOOTH = torch.tensor([[1.0, 1.0, 1.0], [1.0, 5.0, 1.0], [1.0, 1.0, 1.0]], device='cpu') / 13


def draw_magnitude(operation: Any, fixed_attribute: str = 'magnitude') -> float:
    """Draw a magnitude and its sign as MMPretrain does.

    The attribute named ``fixed_attribute``, if it is set, replaces the drawn magnitude.
    """
    magnitude = getattr(operation, fixed_attribute)
    if magnitude is None:
        magnitude = operation.random_magnitude()
    return operation.random_negative(magnitude)


def per_channel(values: float | Sequence[float], channels: int, name: str) -> np.ndarray:
    """One value for each channel of an image.

    ``values`` is one number for all channels, or one for each channel. For a gray image it may also
    be a color (BGR).

    Raises:
        ConfigError: if the number of values does not fit the channels.
    """
    values = np.atleast_1d(np.asarray(values, float))
    if channels == 1 and len(values) == 3:
        return np.atleast_1d(values @ GRAY_WEIGHTS)
    if len(values) not in (1, channels):
        raise ConfigError(
            f'{name}={values.tolist()} has {len(values)} values for images of {channels} '
            'channels; give one for each, or a single one.'
        )
    return np.broadcast_to(values, channels).copy()


def on_device(images: Tensor, values: Any, dtype: torch.dtype | None = None) -> Tensor:
    """Copy values from the CPU to the device of the images, without waiting for the device."""
    return torch.as_tensor(np.asarray(values), dtype=dtype).to(images.device, non_blocking=True)


def channel_values(images: Tensor, transform: Any, name: str) -> Tensor:
    """The values (C, 1, 1) of an attribute of a transform."""
    values = per_channel(
        getattr(transform, name), images.shape[1], f'{type(transform).__name__}: {name}'
    )
    return on_device(images, values, torch.float32)[:, None, None]


def to_uint8(x: Tensor) -> Tensor:
    """Clip values to 0 to 255, in place, and drop their fractions."""
    return x.clamp_(0, 255).to(torch.uint8)


def _rotation(t: Any, height: int, width: int) -> np.ndarray:
    """A random matrix (2, 3), as :func:`warp` takes it."""
    center = t.center or ((width - 1) / 2, (height - 1) / 2)
    return cv2.getRotationMatrix2D(center, -draw_magnitude(t, 'angle'), t.scale)


def _shear(t: Any, height: int, width: int) -> np.ndarray:
    """A random matrix (2, 3), as :func:`warp` takes it."""
    matrix = np.eye(2, 3)
    matrix[(0, 1) if t.direction == 'horizontal' else (1, 0)] = draw_magnitude(t)
    return matrix


def _translation(t: Any, height: int, width: int) -> np.ndarray:
    """A random matrix (2, 3), as :func:`warp` takes it."""
    matrix = np.eye(2, 3)
    row, side = (0, width) if t.direction == 'horizontal' else (1, height)
    matrix[row, 2] = draw_magnitude(t) * side
    return matrix


def warp(images: Tensor, t: Any, matrices: list[np.ndarray]) -> Tensor:
    """Move pixel (x, y) of an image to matrix (2, 3) @ (x, y, 1), like OpenCV's ``warpAffine``."""
    height, width = images.shape[-2:]
    inverses = np.stack([cv2.invertAffineTransform(matrix) for matrix in matrices])
    inverse = on_device(images, inverses, torch.float32)
    sides = (torch.arange(side, device=images.device).float() for side in (height, width))
    y, x = torch.meshgrid(*sides, indexing='ij')
    # (B, H, W, 2), in pixels.
    source = torch.stack((x, y, torch.ones_like(x)), -1) @ inverse.mT[:, None]
    grid = source * (2 / (on_device(images, (width, height), torch.float32) - 1).clamp(min=1)) - 1
    # grid_sample fills with zeros. The padding value is subtracted before and added after.
    pad = channel_values(images, t, 'pad_val')
    mode = t.interpolation if t.interpolation in ('nearest', 'bilinear', 'bicubic') else 'bilinear'
    moved = F.grid_sample(images.float() - pad, grid, mode, 'zeros', align_corners=True)
    return to_uint8((moved + pad).round_())


def look_up_pixels(images: Tensor, t: Any, tables: list[Tensor]) -> Tensor:
    """Look up the value of each pixel in the table (256,) of its image."""
    # (B, 256).
    table = torch.stack(tables).clamp(0, 255).to(images.device, torch.uint8, non_blocking=True)
    return table.gather(1, images.flatten(1).long()).view_as(images)


def blend_with(other: Callable[[Tensor], Tensor]) -> Callable[[Tensor, Any, list[float]], Tensor]:
    """An operation that blends each image with ``other(image)``, by a factor per image."""

    def blend(images: Tensor, t: Any, factors: list[float]) -> Tensor:
        factor = on_device(images, factors, torch.float32)[:, None, None, None]
        x = images.float()
        return to_uint8(torch.lerp(other(x), x, factor))

    return blend


def gray(x: Tensor) -> Tensor:
    """The images (B, 3, H, W) in gray, (B, 1, H, W), rounded as Pillow rounds."""
    return (x * x.new_tensor(GRAY_WEIGHTS)[:, None, None]).sum(1, keepdim=True).round_()


def mean_gray(x: Tensor) -> Tensor:
    """The mean gray of each image, (B, 1, 1, 1)."""
    return gray(x).mean((1, 2, 3), keepdim=True).round_()


def smooth(x: Tensor) -> Tensor:
    """The images (B, C, H, W) blurred by Pillow's 3 x 3 kernel."""
    weight = SMOOTH.to(x.device).expand(x.shape[1], 1, 3, 3)
    return F.conv2d(F.pad(x, (1, 1, 1, 1), 'reflect'), weight, groups=x.shape[1]).round_()


def _factor(t: Any, height: int, width: int) -> float:
    """A random factor, as :func:`blend_with` takes it."""
    return 1 + draw_magnitude(t)


def _posterize(t: Any, height: int, width: int) -> Tensor:
    """A table (256,) that keeps a random number of bits, as :func:`look_up_pixels` takes it."""
    shift = 8 - ceil(draw_magnitude(t, 'bits'))
    return RAMP.to(torch.uint8).long() >> shift << shift


# Name of MMPretrain's transform -> (function that draws, function that computes).
OPERATIONS: dict[str, tuple[Callable, Callable]] = {
    'Rotate': (_rotation, warp),
    'Shear': (_shear, warp),
    'Translate': (_translation, warp),
    'Invert': (lambda t, height, width: 255 - RAMP, look_up_pixels),
    'Posterize': (_posterize, look_up_pixels),
    'Solarize': (
        lambda t, height, width: torch.where(draw_magnitude(t, 'thr') > RAMP, RAMP, 255 - RAMP),
        look_up_pixels,
    ),
    'SolarizeAdd': (
        lambda t, height, width: torch.where(t.thr > RAMP, RAMP + draw_magnitude(t), RAMP),
        look_up_pixels,
    ),
    'Brightness': (lambda t, height, width: RAMP * (1 + draw_magnitude(t)), look_up_pixels),
    'Contrast': (_factor, blend_with(mean_gray)),
    'ColorTransform': (_factor, blend_with(gray)),
    'Sharpness': (_factor, blend_with(smooth)),
    'AutoContrast': (lambda *_: None, lambda images, t, drawn: kernels.autocontrast(images)),
    'Equalize': (lambda *_: None, lambda images, t, drawn: kernels.equalize(images)),
}
