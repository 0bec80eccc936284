"""An image as the model receives it, and the pixels to draw its attention or features over."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import cv2
import numpy as np
import torch
from torch import Tensor, nn

from anyfolder.pixels.bands import as_photograph
from vit_plugin.errors import ConfigError
from vit_plugin.files.resizing import resize_image

MAX_SHOWN_SIDE = 2000  # pixels; larger photographs are reduced before drawing
MAX_DRAWN_PATCHES = 1 << 16  # limit for an image to draw: 256 x 256 patches
MAX_RAMP_DEVIATION = 4.0  # gray levels (of 255) by which a ramp may deviate from a line


class PreparedImage(NamedTuple):
    """An image as the model receives it."""

    image: np.ndarray  # pixels (H, W, 3) in RGB, before they are normalized
    inputs: Tensor  # (1, C, H', W'), which may be padded at the right and bottom
    # The image in RGB at its own resolution, if that is known.
    photograph: np.ndarray | None = None
    next_to_photograph: bool = True  # whether the photograph is drawn before what the model sees

    @property
    def input_size(self) -> tuple[int, int]:
        """Height and width of the input, on which the patches lie."""
        return self.inputs.shape[-2], self.inputs.shape[-1]

    @property
    def sharpest_image(self) -> np.ndarray:
        """The pixels (H, W, 3) in RGB to draw over: the photograph, or else the image."""
        return self.image if self.photograph is None else self.photograph

    def without_padding(self, features: Tensor) -> Tensor:
        """The part of a feature map (C, h, w) that lies on the image."""
        height, width = (
            # Multiplied first, so that a whole number of patches is not rounded up to one more.
            math.ceil(patches * min(image_side, input_side) / input_side)
            for patches, image_side, input_side in zip(
                features.shape[1:], self.image.shape, self.input_size, strict=False
            )
        )
        return features[:, :height, :width]

    @classmethod
    def from_batch(cls, model: nn.Module, batch: Mapping[str, Any]) -> 'PreparedImage':
        """The one image of a batch from a pipeline, normalized by the model's data preprocessor."""
        image = rgb_pixels(batch['inputs'][0])
        return cls(image, model.data_preprocessor(batch, training=False)['inputs'])


def as_picture(pixels: np.ndarray) -> np.ndarray:
    """Pixels (H, W, C) as an RGB picture, with sides of at most :data:`MAX_SHOWN_SIDE`."""
    pixels = as_photograph(pixels)
    scale = MAX_SHOWN_SIDE / max(pixels.shape[:2])
    if scale < 1:
        height, width = (max(round(side * scale), 1) for side in pixels.shape[:2])
        pixels = resize_image(pixels, (width, height), 'area')
    return np.ascontiguousarray(pixels[..., ::-1])


def resize_to_patches(pixels: np.ndarray, size: int, stem: Any) -> Tensor:
    """Resize an image to complete patches, without a crop: (H, W, C) -> (C, H', W').

    Args:
        pixels: the image in BGR, or values of bands.
        size: the shorter side in pixels, before it is rounded.
        stem: the stem of the backbone, which states the size of a patch and the channels.

    Raises:
        ConfigError: if there are more than :data:`MAX_DRAWN_PATCHES` patches.
    """
    scale = size / min(pixels.shape[:2])
    rows, columns = (max(round(side * scale / stem.stride), 1) for side in pixels.shape[:2])
    if rows * columns > MAX_DRAWN_PATCHES:
        fitting = math.floor(size * math.sqrt(MAX_DRAWN_PATCHES / (rows * columns)))
        raise ConfigError(
            f'--img-size {size}: this image would have {rows * columns:,} patches, and '
            f'{MAX_DRAWN_PATCHES:,} can be drawn; give {fitting} or less.'
        )
    sides = (columns * stem.stride, rows * stem.stride)
    backend = 'cv2' if pixels.dtype == np.float32 else 'pillow'  # OpenCV resizes bands
    scaled = resize_image(pixels, sides, 'bicubic', backend)
    if stem.in_channels == 1 and scaled.shape[2:] == (3,):
        scaled = cv2.cvtColor(scaled, cv2.COLOR_BGR2GRAY)
    scaled = scaled.reshape(*scaled.shape[:2], -1)
    return torch.from_numpy(scaled).permute(2, 0, 1).contiguous()


def find_visible_part(
    sample: Callable[[np.ndarray], Mapping[str, Any]],
    whole_shape: Sequence[int],
    seen_shape: Sequence[int],
) -> list[slice] | None:
    """The rows and columns of a photograph that a model's sample of it shows.

    Two gray ramps go through the same steps, and show which columns and rows the sample has. None
    if they are no longer linear, as with padding.

    Args:
        sample: the steps, from pixels to a sample.
        whole_shape: the shape (H, W, C) of the photograph.
        seen_shape: the shape of the image in its sample.
    """
    spans = []
    for axis in (0, 1):
        length, count = whole_shape[axis], seen_shape[axis]
        ramp = np.expand_dims(np.linspace(0, 255, length), (1 - axis, 2))
        image = np.broadcast_to(ramp, whole_shape).astype(np.uint8)
        values = sample(image)['inputs'].float().numpy().mean(axis=(0, 2 - axis))
        slope, first = np.polyfit(np.arange(count), values, 1) if count > 1 else (255.0, 0.0)
        # A ramp that is cropped and scaled stays a line. Resizing may also shift it by up to one
        # pixel of the sample.
        if np.abs(first + slope * np.arange(count) - values).max() > MAX_RAMP_DEVIATION + slope:
            return None
        # The outer edges of the first and last pixel, as positions in the photograph.
        edges = (first + slope * np.array((-0.5, count - 0.5))) * (length - 1) / 255 + 0.5
        low, high = edges.round().astype(int).clip(0, length)
        spans.append(slice(low, max(high, low + 1)))
    return spans


def takes_rgb(preprocessor: Any) -> bool:
    """True if a framework's preprocessor turns the BGR of a pipeline into RGB."""
    return bool(
        # MMPretrain's attribute, or else that of MMEngine's ImgDataPreprocessor
        getattr(preprocessor, 'to_rgb', getattr(preprocessor, '_channel_conversion', False))
    )


def rgb_pixels(inputs: Tensor, preprocessor: nn.Module | None = None) -> np.ndarray:
    """RGB pixels (H, W, 3) of an image (C, H, W).

    The frameworks' pipelines yield BGR. A ``preprocessor`` has normalized the image, and may have
    turned it into RGB.
    """
    values = inputs.detach().float()
    if preprocessor is not None and hasattr(preprocessor, 'mean'):
        values = values * preprocessor.std + preprocessor.mean
    image = values.cpu().permute(1, 2, 0).numpy()
    if image.shape[-1] not in (1, 3):
        return as_photograph(image)[..., ::-1]
    if image.shape[-1] == 1:
        image = image.repeat(3, axis=-1)
    image = image.clip(0, 255).round().astype(np.uint8)
    return image if takes_rgb(preprocessor) else image[..., ::-1]
