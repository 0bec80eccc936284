"""Augment a batch on its device, with the random choices of MMPretrain's single-image transforms.

Each function takes the transform and uint8 images (B, C, H, W), and returns such images. The CPU
draws the operations of each image as for single images. All images with the same operation are then
computed together.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torchvision.transforms.v2 import functional as kernels

from .batch_operations import OPERATIONS, channel_values, on_device, per_channel, to_uint8

# Attributes that images must share to be computed together.
SHARED_ATTRIBUTES = ('pad_val', 'interpolation')


def change_rows(
    images: Tensor, rows: Sequence[int], change: Callable[..., Tensor], *args: Any
) -> None:
    """Change some images of a batch in place, by ``change(images, *args)``."""
    if rows:
        index = on_device(images, rows)
        images[index] = change(images[index], *args)


def rand_augment(transform: Any, images: Tensor) -> Tensor:
    """RandAugment (arXiv:1909.13719). Each step computes images of one operation together."""
    images = images.clone()
    for indices in zip(*(transform.random_policy_indices() for _ in images), strict=True):
        # (function, shared attributes) -> an operation, rows of the batch and their random numbers.
        groups: dict[tuple, tuple[Any, list[int], list[Any]]] = {}
        for i, index in enumerate(indices):
            operation = transform.transforms[index]
            if not operation.random_disable():
                draw, apply = OPERATIONS[type(operation).__name__]
                shared = [str(getattr(operation, name, '')) for name in SHARED_ATTRIBUTES]
                _, rows, drawn = groups.setdefault((apply, *shared), (operation, [], []))
                rows.append(i)
                drawn.append(draw(operation, *images.shape[-2:]))
        for (apply, *_), (operation, rows, drawn) in groups.items():
            change_rows(images, rows, apply, operation, drawn)
    return images


def apply_operation(transform: Any, images: Tensor) -> Tensor:
    """One of RandAugment's operations by itself."""
    draw, apply = OPERATIONS[type(transform).__name__]
    drawn = {
        i: draw(transform, *images.shape[-2:])
        for i in range(len(images))
        if not transform.random_disable()
    }
    images = images.clone()
    change_rows(images, list(drawn), apply, transform, list(drawn.values()))
    return images


# Direction of MMPretrain's RandomFlip -> dimensions of the batch.
FLIPS = {'horizontal': (3,), 'vertical': (2,), 'diagonal': (2, 3)}


def flip(transform: Any, images: Tensor) -> Tensor:
    """Flip some of the images."""
    directions = [transform._choose_direction() for _ in images]
    for direction, dims in FLIPS.items():
        mask = on_device(images, [chosen == direction for chosen in directions])
        images = torch.where(mask[:, None, None, None], images.flip(dims), images)
    return images


def erase(transform: Any, images: Tensor) -> Tensor:
    """Random erasing (arXiv:1708.04896)."""
    height, width = images.shape[-2:]
    boxes = [
        (0, 0, 0, 0) if transform.random_disable() else transform.random_patch(height, width)
        for _ in images
    ]
    # Each has the shape (B, 1, 1, 1).
    top, left, box_height, box_width = on_device(images, boxes).T[:, :, None, None, None]
    y, x = (torch.arange(side, device=images.device) for side in (height, width))
    y = y[:, None]
    # (B, 1, H, W).
    inside = (y >= top) & (y < top + box_height) & (x >= left) & (x < left + box_width)
    fill = channel_values(images, transform, 'fill_color')
    if transform.mode == 'rand' and transform.fill_std is None:
        fill = torch.rand(images.shape, device=images.device) * 256
    elif transform.mode == 'rand':
        std = channel_values(images, transform, 'fill_std')
        fill = fill + torch.randn(images.shape, device=images.device) * std
    return torch.where(inside, to_uint8(fill), images)


def crop(transform: Any, images: Tensor) -> Tensor:
    """Crop each image after padding."""
    if transform.padding is not None:
        fill: Any = per_channel(transform.pad_val, images.shape[1], 'RandomCrop: pad_val').tolist()
        if transform.padding_mode != 'constant':
            fill = 0  # these modes use no fill, and torchvision rejects a list for them
        images = kernels.pad(images, transform.padding, fill, transform.padding_mode)
    blank = np.broadcast_to(np.uint8(0), images.shape[-2:])  # its size is all that counts
    boxes = [transform.rand_crop_params(blank) for _ in images]
    crops = [
        image[:, top : top + height, left : left + width]
        for image, (top, left, height, width) in zip(images, boxes, strict=True)
    ]
    return torch.stack(crops)
