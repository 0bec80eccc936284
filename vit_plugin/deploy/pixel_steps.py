"""Steps from an image's pixels to a model's input, as plain data that needs no framework.

A file in ONNX has them in its metadata: :func:`~vit_plugin.deploy.pipeline_steps.steps_of`
translates the pipeline that a checkpoint runs. A step is a dict:

- ``resize``: a name of :data:`RESIZE_RULES` and its arguments, with ``interpolation`` and
  ``backend`` (``'cv2'`` or ``'pillow'``, whose results differ).
- ``crop``: width and height of a center crop. Its offset is half of the remainder, rounded as by
  Python's ``round``, or down if ``rounding`` is ``'floor'``. Smaller images are padded on all sides
  with ``fill`` (a value per channel), or kept if there is no ``fill``.
- ``pad``: adds ``fill`` at the right and at the bottom, up to the next multiples of ``unit`` and at
  least the width and height in ``pad``. Files of earlier versions may have ``least``, the minimum
  length of each side, instead of ``pad``. What is padded becomes float32, so that a fractional
  fill is kept.
- ``dtype``: ``'float32'``, so that later steps compute without rounding.

The metadata is untrusted, so the size after a step is checked before the step is applied.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import Field, with_config
from typing_extensions import TypedDict

from anyfolder.limits import VARIABLE, limit
from vit_plugin.arguments.fields import STRICT, PositiveInt
from vit_plugin.errors import ConfigError
from vit_plugin.files.resizing import center_start, edge_size, resize_image, rounded_up

PIXELS = 'pixels that go into a network'
INPUT_LIMITS = {PIXELS: 1 << 25}  # 5,792 x 5,792
MAX_FILL_CHANNELS = 1_000  # channels of a fill value
MAX_STEP_CHARACTERS = 200  # characters of a step in a message

Numbers = Annotated[list[float], Field(max_length=MAX_FILL_CHANNELS)]
Sides = Annotated[list[PositiveInt], Field(min_length=2, max_length=2)]


@with_config(STRICT)
class PixelStep(TypedDict, total=False):
    """A step, see the docstring of the module."""

    resize: Annotated[list[str | float], Field(min_length=2, max_length=5)]
    interpolation: Literal['nearest', 'bilinear', 'bicubic', 'area', 'lanczos', 'box', 'hamming']
    backend: Literal['cv2', 'pillow']
    crop: Sides
    rounding: Literal['floor']
    pad: Sides
    unit: PositiveInt
    least: PositiveInt
    fill: float | Numbers
    dtype: Literal['float32']


class PlacedPixels(NamedTuple):
    """Pixels (H, W, C), and where the image is in them.

    A point (x, y) of the original image is at ``scale * point + offset`` in the pixels.
    ``unpadded_size`` are height and width without padding at the right and bottom.
    """

    pixels: np.ndarray
    scale: np.ndarray
    offset: np.ndarray
    unpadded_size: tuple[int, ...]


def scale_size(
    width: int,
    height: int,
    scale_width: int,
    scale_height: int,
    file_width: float = math.inf,
    file_height: float = math.inf,
) -> tuple[int, int]:
    """MMCV's ``Resize(keep_ratio=True)``: the largest size within a scale.

    The longer side of the scale is for the longer side of the image. If the file takes only one
    size, the result also fits into its ``file_width`` and ``file_height``.
    """
    ratio = min(
        max(scale_width, scale_height) / max(width, height),
        min(scale_width, scale_height) / min(width, height),
        file_width / width,
        file_height / height,
    )
    return int(width * ratio + 0.5), int(height * ratio + 0.5)


def target_size(
    width: int, height: int, target_width: float, target_height: float, longest: float
) -> tuple[int, int]:
    """timm's ``ResizeKeepRatio``: cover a target (``longest=0``), fit into it (1), or between."""
    ratios = width / target_width, height / target_height
    ratio = max(ratios) * longest + min(ratios) * (1 - longest)
    return round(width / ratio), round(height / ratio)


# (width, height of an image, *arguments of the step) -> the new width and height. The arguments of
# `exact` are the new width and height, and those of `edge` are a side, such as 'short', and its
# new length.
RESIZE_RULES: dict[str, Callable[..., tuple[int, int]]] = dict(
    exact=lambda width, height, *new: new, edge=edge_size, scale=scale_size, target=target_size
)


def size_after(step: Mapping[str, Any], width: int, height: int) -> tuple[int, int]:
    """Width and height of an image after a step.

    Raises:
        ConfigError: if the image exceeds the limit of pixels.
    """
    sides = width, height
    if 'resize' in step:
        rule, *arguments = step['resize']
        width, height = RESIZE_RULES[rule](*sides, *arguments)
        width, height = max(int(width), 1), max(int(height), 1)
    elif 'crop' in step:
        crop_width, crop_height = step['crop']
        if step.get('fill') is None:  # smaller images are kept
            width, height = min(width, crop_width), min(height, crop_height)
        else:
            width, height = crop_width, crop_height
    elif 'dtype' not in step:  # a padding, also in an earlier file, without `pad`
        unit, least = step.get('unit', 1), step.get('least', 1)
        pad_width, pad_height = step.get('pad', (0, 0))
        width = max(rounded_up(max(width, least), unit), pad_width)
        height = max(rounded_up(max(height, least), unit), pad_height)
    if not 0 < width * height <= limit(PIXELS, INPUT_LIMITS):
        raise ConfigError(
            f'{_shortened(step)} makes {width:,} x {height:,} pixels of {sides[0]:,} x '
            f'{sides[1]:,}, and no more than {limit(PIXELS, INPUT_LIMITS):,} go into a network; '
            f'give an image of another shape, or {VARIABLE}=10 in the environment allows more.'
        )
    return width, height


def _shortened(step: Mapping[str, Any]) -> str:
    """The step as a message names it, shortened."""
    text = f'The step {dict(step)}'
    return text if len(text) <= MAX_STEP_CHARACTERS else f'{text[:MAX_STEP_CHARACTERS]} ...'


def apply_steps(steps: Sequence[Mapping[str, Any]], image: np.ndarray) -> PlacedPixels:
    """Apply the steps to an image (H, W, 3) or (H, W).

    Raises:
        ConfigError: see :func:`size_after`.
    """
    placed = PlacedPixels(image, np.ones(2), np.zeros(2), image.shape[:2])
    for step in steps:
        new_size = size_after(step, *placed.pixels.shape[1::-1])
        if 'dtype' in step:
            placed = placed._replace(pixels=placed.pixels.astype(step['dtype']))
        elif 'resize' in step:
            placed = _resized(placed, new_size, step['interpolation'], step['backend'])
        elif 'crop' in step:
            placed = _cropped(placed, new_size, step.get('fill'), 'rounding' in step)
        else:  # a padding
            placed = _padded(placed, new_size, step['fill'])
    return placed


def _resized(
    placed: PlacedPixels, new_size: tuple[int, int], interpolation: str, backend: str
) -> PlacedPixels:
    before = np.array(placed.pixels.shape[1::-1])
    pixels = resize_image(placed.pixels, new_size, interpolation, backend)
    ratio = np.array(new_size) / before
    return PlacedPixels(pixels, placed.scale * ratio, placed.offset * ratio, pixels.shape[:2])


def _cropped(
    placed: PlacedPixels, new_size: tuple[int, int], fill: Any, rounds_down: bool
) -> PlacedPixels:
    sides, (width, height) = np.array(placed.pixels.shape[1::-1]), new_size
    pixels, offset = placed.pixels, placed.offset
    if (missing := (np.array(new_size) - sides).clip(0)).any():
        corner = missing // 2
        pixels = _on_canvas(pixels, sides + missing, corner, fill)
        sides, offset = sides + missing, offset + corner
    left = center_start(int(sides[0]), width, rounds_down)
    top = center_start(int(sides[1]), height, rounds_down)
    pixels = pixels[top : top + height, left : left + width]
    return PlacedPixels(pixels, placed.scale, offset - (left, top), pixels.shape[:2])


def _padded(placed: PlacedPixels, new_size: tuple[int, int], fill: Any) -> PlacedPixels:
    if new_size == placed.pixels.shape[1::-1]:
        return placed
    pixels = placed.pixels.astype(np.float32)  # keeps fractions of a mean
    canvas = _on_canvas(pixels, np.array(new_size), np.zeros(2, int), fill)
    return placed._replace(pixels=canvas)


def _on_canvas(pixels: np.ndarray, sides: np.ndarray, corner: np.ndarray, fill: Any) -> np.ndarray:
    """Pixels on a canvas of this width and height, with their left top at ``corner``."""
    canvas = np.empty((*sides[::-1], *pixels.shape[2:]), pixels.dtype)
    canvas[:] = fill if pixels.ndim == 3 else np.mean(fill)  # gray has one value
    (left, top), (height, width) = corner, pixels.shape[:2]
    canvas[top : top + height, left : left + width] = pixels
    return canvas
