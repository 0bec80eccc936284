"""Boxes, masks and maps over an image, drawn by supervision."""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from PIL import Image

from vit_plugin.errors import needed_by

from .marks import (
    IGNORED,
    Instances,
    Marks,
    name_of,
)
from .style import CLASS_COLORS, shortened

SIDE = 480  # pixels of the longer side of an image that is drawn on
PIXELS = 6  # from this factor on, an image is enlarged to squares
OPACITY = 0.45
LETTERS = 20  # of a name, next to a box
MOST = 100  # predictions that are drawn in an image, those of the highest scores
NAMED = 30  # boxes in an image that have their names; with more, the names would cover it


def annotated(
    image: np.ndarray, marks: Marks, classes: Sequence[str] = (), side: int = SIDE
) -> np.ndarray:
    """Draw marks on an image, after it was enlarged or reduced to ``side`` pixels.

    Args:
        image: RGB pixels (H, W, 3).
        marks: what is drawn.
        classes: names of the classes.
        side: pixels of the longer side.

    Raises:
        MissingExtraError: if there are boxes or a map, and supervision is not installed.
    """
    height, width = image.shape[:2]
    scale = side / max(height, width)
    size = max(round(width * scale), 1), max(round(height * scale), 1)
    how = Image.Resampling.NEAREST if scale >= PIXELS else Image.Resampling.BICUBIC
    canvas = Image.fromarray(image).resize(
        size, how
    )  # supervision takes arrays for BGR, but images for what they are
    if marks.map is not None:
        canvas = _with_map(canvas, resized(marks.map, size))
    if marks.instances is not None and len(marks.instances):
        canvas = _with_instances(canvas, _strongest(marks.instances), marks.frame, classes)
    return np.asarray(canvas)


def resized(values: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """A map of classes, or a mask, in another width and height, by the nearest pixel."""
    rows, columns = (
        np.arange(new) * old // new for new, old in zip(reversed(size), values.shape, strict=True)
    )
    return values[rows[:, None], columns]


def _strongest(instances: Instances) -> Instances:
    if instances.scores is None or len(instances) <= MOST:
        return instances
    return instances.where(instances.scores >= np.sort(instances.scores)[-MOST])


def _with_map(canvas: Image.Image, classes: np.ndarray) -> Image.Image:
    sv, palette, _ = _supervision()
    labels = [label for label in np.unique(classes).tolist() if label != IGNORED]
    if not labels:
        return canvas
    masks = np.stack([classes == label for label in labels])
    found = sv.Detections(sv.mask_to_xyxy(masks), masks, class_id=np.array(labels))
    return sv.MaskAnnotator(palette, OPACITY).annotate(canvas, found)


def _with_instances(
    canvas: Image.Image, instances: Instances, frame: tuple[int, int], classes: Sequence[str]
) -> Image.Image:
    sv, palette, letters = _supervision()
    width, height = canvas.size
    scale = np.array((width / frame[1], height / frame[0]) * 2)
    found = sv.Detections(instances.boxes * scale, class_id=instances.labels.astype(int))
    thickness = sv.calculate_optimal_line_thickness((width, height))
    if instances.masks is not None:
        from pycocotools.mask import decode

        found.mask = np.stack(
            [resized(decode(rle), (width, height)) for rle in instances.masks]
        ).astype(bool)
        canvas = sv.MaskAnnotator(palette, OPACITY).annotate(canvas, found)
    canvas = sv.BoxAnnotator(palette, thickness).annotate(canvas, found)
    if len(instances) > NAMED:
        return canvas
    texts = [shortened(name_of(label, classes), LETTERS) for label in instances.labels.tolist()]
    if instances.scores is not None:
        texts = [
            f'{text} {score:.2f}'
            for text, score in zip(texts, instances.scores.tolist(), strict=True)
        ]
    if instances.crowd is not None:
        texts = [
            text + ' (crowd)' * crowd
            for text, crowd in zip(texts, instances.crowd.tolist(), strict=True)
        ]
    label = sv.LabelAnnotator(
        palette,
        text_color=letters,
        text_scale=sv.calculate_optimal_text_scale((max(height, width),) * 2),
        text_padding=3,
        smart_position=True,
    )
    return label.annotate(canvas, found, texts)


@functools.cache
def _supervision() -> tuple[Any, Any, Any]:
    """The library, the colors of classes, and for each the color of legible letters on it."""
    with needed_by('Drawing boxes and masks'):
        import supervision as sv
    colors = sv.ColorPalette.from_hex(CLASS_COLORS)
    bright = [np.dot(color.as_rgb(), (0.299, 0.587, 0.114)) > 150 for color in colors.colors]
    letters = sv.ColorPalette([sv.Color.BLACK if one else sv.Color.WHITE for one in bright])
    return sv, colors, letters
