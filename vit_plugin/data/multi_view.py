"""Batch versions of the augmentations of contrastive methods: crops, color jitter, grayscale.

See :mod:`vit_plugin.data.batch_augment` for the conventions.
"""

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from .batch_augment import change_rows
from .batch_operations import blend_with, gray, mean_gray, on_device, to_uint8

CROP_INTERPOLATIONS = ('nearest', 'bilinear', 'bicubic')


def resized_crop(transform: Any, images: Tensor) -> Tensor:
    """Crop and resize each image like OpenCV: pixels outside the crop have no influence."""
    blank = np.broadcast_to(np.uint8(0), images.shape[-2:])  # its size is all that counts
    boxes = on_device(images, [transform.rand_crop_params(blank) for _ in images], torch.float32)
    positions = []
    for axis, side in enumerate(transform.scale):
        first, length = boxes[:, axis, None], boxes[:, axis + 2, None]  # (B, 1)
        # (B, side), in the crop.
        position = (torch.arange(side, device=images.device) + 0.5) * length / side - 0.5
        positions.append(first + torch.minimum(position.clamp(min=0), length - 1))
    height, width = images.shape[-2:]
    y, x = (
        (position + 0.5) * (2 / full) - 1
        for position, full in zip(positions, (height, width), strict=True)
    )
    # (B, height, width, 2).
    grid = torch.stack(torch.broadcast_tensors(x[:, None], y[:, :, None]), -1)
    crops = F.grid_sample(
        images.float(), grid, transform.interpolation, 'border', align_corners=False
    )
    return to_uint8(crops.round_())


def turn_hue(images: Tensor, turns: Tensor) -> Tensor:
    """Shift the hue of BGR images (B, 3, H, W) by a fraction of the color circle (B,).

    Each channel is then computed from hue, saturation and value (A. R. Smith, SIGGRAPH 1978).
    """
    blue, green, red = images.float().unbind(1)
    value = torch.maximum(torch.maximum(blue, green), red)
    chroma = value - torch.minimum(torch.minimum(blue, green), red)
    nonzero_chroma = chroma.clamp(min=1)  # gray pixels have no hue
    # The hue is in sixths of the circle.
    hue = torch.where(
        value == green, 2 + (blue - red) / nonzero_chroma, 4 + (red - green) / nonzero_chroma
    )
    hue = torch.where(value == red, (green - blue) / nonzero_chroma, hue) + 6 * turns[:, None, None]
    # The hue relative to a channel decides its share of the chroma.
    sectors = [(shift + hue) % 6 for shift in (1, 3, 5)]  # for blue, green and red
    channels = [
        value - chroma * torch.minimum(sector, 4 - sector).clamp(0, 1) for sector in sectors
    ]
    return to_uint8(torch.stack(channels, dim=1).round_())


# The changes of MMPretrain's ColorJitter, in the order of the numbers that it draws.
JITTERS = (
    blend_with(torch.zeros_like),  # brightness
    blend_with(mean_gray),  # contrast
    blend_with(gray),  # saturation
    # Hue.
    lambda images, t, turns: turn_hue(images, on_device(images, turns, torch.float32)),
)


def jitter(transform: Any, images: Tensor) -> Tensor:
    """Change brightness, contrast, saturation and hue of each image, each in a random order."""
    # For each image the order of the changes, and the value of each change or None.
    orders: list[Any] = []
    values: list[list[Any]] = []
    for _ in images:
        order, *image_values = transform._rand_params()
        orders.append(order)
        values.append(image_values)
    images = images.clone()
    for step in range(len(JITTERS)):
        for number, change in enumerate(JITTERS):
            rows = [
                i
                for i in range(len(images))
                if orders[i][step] == number and values[i][number] is not None
            ]
            change_rows(images, rows, change, transform, [values[i][number] for i in rows])
    return images


def grayscale(transform: Any, images: Tensor) -> Tensor:
    """Make some of the images gray."""
    chosen = on_device(images, [transform._random_prob() < transform.prob for _ in images])
    weights = on_device(images, transform.channel_weights, torch.float32)
    values = (images * (weights / weights.sum())[:, None, None]).sum(1, keepdim=True)
    return torch.where(chosen[:, None, None, None], to_uint8(values), images)
