"""Steps from an image's pixels to a model's input, as plain data that needs no framework.

A file in ONNX has them in its metadata: :func:`~vit_plugin.deploy.pipeline_steps.steps_of`
translates the pipeline that a checkpoint runs. A step is a dict:

- ``resize``: a name of :data:`SIZES` and its arguments, with ``interpolation`` and ``backend``
  (``'cv2'`` or ``'pillow'``, whose results differ).
- ``crop``: width and height of the middle part. ``fill`` (a value for each channel) is around an
  image that is smaller, which otherwise stays so.
- ``pad``: width and height, or ``unit`` and ``least``: a multiple, at least so much. ``fill`` is at
  the right and at the bottom, with its fractions.
- ``dtype``: ``'float32'``, in which later steps compute without rounding.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from vit_plugin.files.resizing import edge_size, resized


class Placed(NamedTuple):
    """Pixels (H, W, C). A point (x, y) of the image is at ``scale * point + offset`` in them.

    ``inner`` are height and width without padding at the right and bottom.
    """

    pixels: np.ndarray
    scale: np.ndarray
    offset: np.ndarray
    inner: tuple[int, ...]


def scale_size(width: int, height: int, longer: int, shorter: int) -> tuple[int, int]:
    """MMCV's ``Resize(keep_ratio=True)``: within a scale, which turns with the image."""
    ratio = min(longer / max(width, height), shorter / min(width, height))
    return int(width * ratio + 0.5), int(height * ratio + 0.5)


def target_size(
    width: int, height: int, target_width: float, target_height: float, longest: float
) -> tuple[int, int]:
    """timm's ``ResizeKeepRatio``: around a target (``longest`` is 0), or within it (1)."""
    ratios = width / target_width, height / target_height
    ratio = max(ratios) * longest + min(ratios) * (1 - longest)
    return round(width / ratio), round(height / ratio)


# Width and height of an image, and arguments -> the new width and height.
SIZES: dict[str, Callable[..., tuple[int, int]]] = dict(
    exact=lambda width, height, *new: new, edge=edge_size, scale=scale_size, target=target_size
)


def apply_steps(steps: Sequence[Mapping[str, Any]], image: np.ndarray) -> Placed:
    """Take an image (H, W, 3) or (H, W) through the steps."""
    placed = Placed(image, np.ones(2), np.zeros(2), image.shape[:2])
    for step in steps:
        if 'dtype' in step:
            placed = placed._replace(pixels=placed.pixels.astype(step['dtype']))
        elif 'resize' in step:
            placed = _resized(placed, **step)
        elif 'crop' in step:
            placed = _cropped(placed, **step)
        else:
            placed = _padded(placed, **step)
    return placed


def _resized(placed: Placed, resize: Sequence[Any], interpolation: str, backend: str) -> Placed:
    before = np.array(placed.pixels.shape[1::-1])
    rule, *arguments = resize
    width, height = SIZES[rule](*before.tolist(), *arguments)
    after = max(int(width), 1), max(int(height), 1)
    pixels = resized(placed.pixels, after, interpolation, backend)
    ratio = np.array(after) / before
    return Placed(pixels, placed.scale * ratio, placed.offset * ratio, pixels.shape[:2])


def _cropped(placed: Placed, crop: Sequence[int], fill: Any = None) -> Placed:
    sides, wanted = np.array(placed.pixels.shape[1::-1]), np.array(crop)
    pixels, offset = placed.pixels, placed.offset
    if fill is not None and (sides < wanted).any():
        before, missing = (wanted - sides).clip(0) // 2, (wanted - sides).clip(0)
        pixels = _on_canvas(pixels, sides + missing, before, fill)
        sides, offset = sides + missing, offset + before
    wanted = np.minimum(wanted, sides)
    left, top = (round(float(side)) for side in (sides - wanted) / 2)
    pixels = pixels[top : top + wanted[1], left : left + wanted[0]]
    return Placed(pixels, placed.scale, offset - (left, top), pixels.shape[:2])


def _padded(
    placed: Placed, fill: Any, pad: Sequence[int] = (0, 0), unit: int = 1, least: int = 1
) -> Placed:
    sides = np.array(placed.pixels.shape[1::-1])
    whole = np.maximum(-(-np.maximum(sides, least) // unit) * unit, pad)
    if (whole == sides).all():
        return placed
    pixels = placed.pixels.astype(np.float32)  # which a mean is not rounded in
    canvas = _on_canvas(pixels, whole, np.zeros(2, int), fill)
    return placed._replace(pixels=canvas)


def _on_canvas(pixels: np.ndarray, sides: np.ndarray, corner: np.ndarray, fill: Any) -> np.ndarray:
    canvas = np.empty((*sides[::-1], *pixels.shape[2:]), pixels.dtype)
    canvas[:] = fill if pixels.ndim == 3 else np.mean(fill)
    (left, top), (height, width) = corner, pixels.shape[:2]
    canvas[top : top + height, left : left + width] = pixels
    return canvas
