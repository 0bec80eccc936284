"""Draw a sheet of images with their labels as stored in the folder, without augmentation."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

import cv2
import numpy as np

from anyfolder.dataset import Dataset, Image, Object, object_mask
from anyfolder.pixels.bands import as_photograph
from anyfolder.readers.mask_classes import NOT_LABELED
from anyfolder.sampling import evenly_spaced
from anyfolder.wording import counted

from .drawn_labels import (
    WHITE,
    background_of,
    colored,
    draw_map,
    draw_objects,
    line_height,
    write_line,
)
from .palette import color_of
from .scaled_pictures import SIDE, resized, scaled

MAX_IMAGES = 16  # maximum number of images on a sheet
MAX_COLUMNS = 4  # maximum number of pictures in a row
GAP = 8  # pixels between pictures
MAX_LINE_LETTERS = 44  # in a line above a picture
MAX_NAME_LETTERS = 20  # in a class name at a box and in the legend
MAX_LEGEND_CLASSES = 24
LEGEND_COLUMNS = 8  # columns of the legend below MAX_COLUMNS pictures; fewer below fewer pictures
NO_SEGMENT = -1  # a pixel without a segment in a class map; panoptic data may have a class 255

# The result of a function that draws an image's labels: a text about them, for the line above the
# picture, and the numbers of the classes that the legend must name.
Drawn = tuple[str, Sequence[int]]


class _Panel(NamedTuple):
    """A picture (H, W, 3) in RGB, two lines of text above it, and the classes that it shows."""

    picture: np.ndarray
    lines: tuple[str, str]
    classes: Sequence[int] = ()


def draw_sheet(data: Dataset) -> np.ndarray:
    """Draw the labels of at most 16 images, evenly over all splits.

    Above each image are its file, its split and its classes or the number of its objects. Maps and
    boxes have a legend with at most 24 of the classes that occur.

    Returns:
        RGB pixels (H, W, 3), uint8.

    Raises:
        InputError: if an image cannot be read.
    """
    images = [*data.images()]
    chosen = (images[i] for i in evenly_spaced(len(images), MAX_IMAGES))
    panels = [*chain(*(_panels(data, split, image) for split, image in chosen))]
    columns = min(MAX_COLUMNS, len(panels))
    rows = [panels[i : i + columns] for i in range(0, len(panels), columns)]
    width = columns * (SIDE + GAP) + GAP
    strips = [_draw_row(row, width) for row in rows]
    shown = sorted({label for panel in panels for label in panel.classes})
    return np.concatenate([*strips, *_draw_legend(shown, data.classes, width)])


def _panels(data: Dataset, split: str, image: Image) -> Iterator[_Panel]:
    """An image with its labels, next to its depth if it has depth."""
    picture = scaled(np.ascontiguousarray(as_photograph(image.pixels())[..., ::-1]))
    text, classes = DRAW_LABELS[data.task](data, image, picture)
    heading = f'{split}: {text}' if text else split
    yield _Panel(picture, (_shortened_path(data.name_of(image)), heading), classes)
    if data.task == 'depth':
        depth = data.depth(image)
        known = depth[depth > 0]
        ends = f'{known.min():.2f} to {known.max():.2f} m' if known.size else 'not known'
        yield _Panel(scaled(colored(depth, in_meters=True)), ('', ends))


# The functions of DRAW_LABELS: each draws the labels of an image on its picture.


def _describe_classes(data: Dataset, image: Image, picture: np.ndarray) -> Drawn:
    return ', '.join(image.labels) or 'no class', ()


def _draw_objects(data: Dataset, image: Image, picture: np.ndarray) -> Drawn:
    _draw_boxes(data, image, picture, image.objects)
    labels = [data.number_of(obj.label) for obj in image.objects if obj.label]
    return _object_count(image.objects), labels


def _draw_mask(data: Dataset, image: Image, picture: np.ndarray) -> Drawn:
    tinted, present = _tint(data, data.class_map(image), NOT_LABELED, picture)
    return ', '.join(data.classes[label] for label in present) or 'not labeled', tinted


def _draw_segments(data: Dataset, image: Image, picture: np.ndarray) -> Drawn:
    tinted, _ = _tint(data, _segment_classes(data, image), NO_SEGMENT, picture)
    things = [obj for obj in image.objects if _is_thing(data, obj)]
    _draw_boxes(data, image, picture, things)
    return _object_count(things), tinted


# Task -> the function that draws the labels of an image.
DRAW_LABELS: dict[str, Callable[[Dataset, Image, np.ndarray], Drawn]] = {
    'classification': _describe_classes,
    'detection': _draw_objects,
    'instance': _draw_objects,
    'segmentation': _draw_mask,
    'panoptic': _draw_segments,
    'depth': lambda data, image, picture: ('', ()),
}


def _tint(
    data: Dataset, labels: np.ndarray, unlabeled: int, picture: np.ndarray
) -> tuple[list[int], list[int]]:
    """Draw the class of each pixel, and return the tinted classes and all that occur.

    Args:
        data: the dataset.
        labels: the class numbers (H, W), at the size of the image.
        unlabeled: the class number of pixels without a class, which are not tinted, like those of
            the background.
        picture: the picture of the image.
    """
    labels = resized(labels, (picture.shape[1], picture.shape[0]))
    untinted = [unlabeled, *background_of(enumerate(data.classes))]
    draw_map(picture, labels, untinted)
    present = [label for label in np.unique(labels).tolist() if label != unlabeled]
    return [label for label in present if label not in untinted], present


def _object_count(objects: Sequence[Object]) -> str:
    return counted(sum(not obj.crowd for obj in objects), 'object')


def _is_thing(data: Dataset, obj: Object) -> bool:
    """Whether the class of an object is a thing; the last classes are stuff."""
    return data.number_of(obj.label) < len(data.classes) - data.stuff


def _segment_classes(data: Dataset, image: Image) -> np.ndarray:
    """The class of each pixel (H, W) of panoptic data; :data:`NO_SEGMENT` without one."""
    segments = data.segments(image)
    labels = np.full(segments.shape, NO_SEGMENT)
    for obj in image.objects:
        labels[segments == obj.segment] = data.number_of(obj.label)
    return labels


def _draw_boxes(
    data: Dataset, image: Image, picture: np.ndarray, objects: Sequence[Object]
) -> None:
    """Draw objects, the largest first. Regions without a class have the next free color."""
    ordered = sorted(objects, key=lambda obj: -obj.area)
    scale = np.divide(picture.shape[1::-1], image.size)
    boxes = np.reshape([obj.box for obj in ordered], (-1, 4)).astype(float)
    boxes[:, 2:] += boxes[:, :2]
    labels = [data.number_of(obj.label) if obj.label else len(data.classes) for obj in ordered]
    texts = [
        _shortened(obj.label or 'ignored', MAX_NAME_LETTERS)
        + (' (crowd)' if obj.crowd and obj.label else '')
        for obj in ordered
    ]
    with_masks = data.task == 'instance' and all(obj.segmentation for obj in ordered)
    masks = (_mask(obj, image.size, picture.shape[1::-1]) for obj in ordered if with_masks)
    draw_objects(picture, boxes * np.tile(scale, 2), labels, texts, masks)


def _mask(obj: Object, size: tuple[int, int], picture_size: tuple[int, int]) -> np.ndarray:
    """The mask of an object in an image of this size, at the size of the picture."""
    if isinstance(obj.segmentation, Mapping):
        return resized(object_mask(obj, size), picture_size)
    scale = np.divide(picture_size, size)
    polygons = [
        (np.reshape(polygon, (-1, 2)) * scale).ravel().tolist()
        for polygon in obj.segmentation or ()
    ]
    return object_mask(replace(obj, segmentation=polygons), picture_size)


def _draw_row(panels: Sequence[_Panel], width: int) -> np.ndarray:
    """Pictures side by side, each below its lines of text."""
    above = 2 * line_height(SIDE)
    height = above + max(panel.picture.shape[0] for panel in panels) + GAP
    row = np.full((height, width, 3), WHITE, np.uint8)
    for number, (picture, lines, _) in enumerate(panels):
        left = GAP + number * (SIDE + GAP)
        row[above : above + picture.shape[0], left : left + picture.shape[1]] = picture
        strip = np.full((above, SIDE, 3), WHITE, np.uint8)
        for i, line in enumerate(lines):
            write_line(strip, _shortened(line, MAX_LINE_LETTERS), (0, i * above // 2), WHITE)
        row[:above, left : left + SIDE] = strip
    return row


def _draw_legend(shown: Sequence[int], classes: Sequence[str], width: int) -> Iterator[np.ndarray]:
    """Rows of class names, each name on the color of its class."""
    names = [(classes[label], color_of(label)) for label in shown[:MAX_LEGEND_CLASSES]]
    if len(shown) > MAX_LEGEND_CLASSES:
        names.append((f'and {len(shown) - MAX_LEGEND_CLASSES} more', WHITE))
    columns = max(LEGEND_COLUMNS * (width - GAP) // (MAX_COLUMNS * (SIDE + GAP)), 1)
    for start in range(0, len(names), columns):
        strip = np.full((line_height(SIDE) + GAP, width, 3), WHITE, np.uint8)
        for column, (name, color) in enumerate(names[start : start + columns]):
            cell = np.full((line_height(SIDE), width // columns - GAP, 3), WHITE, np.uint8)
            write_line(cell, _shortened(name, MAX_NAME_LETTERS), (0, 0), color)
            left = GAP + column * (width - GAP) // columns
            strip[: cell.shape[0], left : left + cell.shape[1]] = cell[:, : width - left]
        yield strip


def _shortened(text: str, max_letters: int) -> str:
    """Text of at most ``max_letters`` letters, shortened at its end."""
    return text if len(text) <= max_letters else f'{text[: max_letters - 3]}...'


def _shortened_path(path: str) -> str:
    """A path in a line, shortened at its beginning, since files differ at the end."""
    return path if len(path) <= MAX_LINE_LETTERS else f'...{path[3 - MAX_LINE_LETTERS :]}'


def encode_png(picture: np.ndarray) -> bytes:
    """The content of a PNG file with an RGB picture (H, W, 3)."""
    return cv2.imencode('.png', np.ascontiguousarray(picture[..., ::-1]))[1].tobytes()
