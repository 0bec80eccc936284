"""A sheet of images with their labels as stored in the folder, without augmentation."""

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

IMAGES = 16  # on a sheet
COLUMNS = 4
GAP = 8  # pixels between pictures
LETTERS = 44  # letters of a line above a picture
NAME_LETTERS = 20  # letters of a class name at a box and in the legend
LEGEND = 24  # classes
LEGEND_COLUMNS = 8
NO_SEGMENT = -1  # in a class map; there may be more than 255 classes

Drawn = tuple[str, Sequence[int]]  # a text about an image's labels, and the classes for the legend


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
    chosen = (images[i] for i in evenly_spaced(len(images), IMAGES))
    panels = [*chain(*(_panels(data, split, image) for split, image in chosen))]
    columns = min(COLUMNS, len(panels))
    rows = [panels[i : i + columns] for i in range(0, len(panels), columns)]
    width = columns * (SIDE + GAP) + GAP
    strips = [_row(row, width) for row in rows]
    shown = sorted({label for panel in panels for label in panel.classes})
    return np.concatenate([*strips, *_legend(shown, data.classes, width)])


def _panels(data: Dataset, split: str, image: Image) -> Iterator[_Panel]:
    """An image with its labels, next to its depth if it has depth."""
    picture = scaled(np.ascontiguousarray(as_photograph(image.pixels())[..., ::-1]))
    text, classes = DRAWN[data.task](data, image, picture)
    heading = f'{split}: {text}' if text else split
    yield _Panel(picture, (_ending(data.name_of(image)), heading), classes)
    if data.task == 'depth':
        depth = data.depth(image)
        known = depth[depth > 0]
        ends = f'{known.min():.2f} to {known.max():.2f} m' if known.size else 'not known'
        yield _Panel(scaled(colored(depth, True)), ('', ends))


def _classified(data: Dataset, image: Image, picture: np.ndarray) -> Drawn:
    return ', '.join(image.labels) or 'no class', ()


def _with_objects(data: Dataset, image: Image, picture: np.ndarray) -> Drawn:
    _draw_boxes(data, image, picture, image.objects)
    labels = [data.number_of(found.label) for found in image.objects if found.label]
    return _counted(image.objects), labels


def _with_mask(data: Dataset, image: Image, picture: np.ndarray) -> Drawn:
    tinted, present = _tint(data, data.class_map(image), NOT_LABELED, picture)
    return ', '.join(data.classes[label] for label in present) or 'not labeled', tinted


def _with_segments(data: Dataset, image: Image, picture: np.ndarray) -> Drawn:
    tinted, _ = _tint(data, _segment_classes(data, image), NO_SEGMENT, picture)
    things = [found for found in image.objects if _is_thing(data, found)]
    _draw_boxes(data, image, picture, things)
    return _counted(things), tinted


# Task -> the function that draws the labels of an image.
DRAWN: dict[str, Callable[[Dataset, Image, np.ndarray], Drawn]] = {
    'classification': _classified,
    'detection': _with_objects,
    'instance': _with_objects,
    'segmentation': _with_mask,
    'panoptic': _with_segments,
    'depth': lambda data, image, picture: ('', ()),
}


def _tint(
    data: Dataset, labels: np.ndarray, none: int, picture: np.ndarray
) -> tuple[list[int], list[int]]:
    """Draw the class of each pixel (H, W), and return the tinted classes and all that occur."""
    labels = resized(labels, (picture.shape[1], picture.shape[0]))
    untinted = [none, *background_of(enumerate(data.classes))]
    draw_map(picture, labels, untinted)
    present = [label for label in np.unique(labels).tolist() if label != none]
    return [label for label in present if label not in untinted], present


def _counted(objects: Sequence[Object]) -> str:
    return counted(sum(not found.crowd for found in objects), 'object')


def _is_thing(data: Dataset, found: Object) -> bool:
    return data.number_of(found.label) < len(data.classes) - data.stuff


def _segment_classes(data: Dataset, image: Image) -> np.ndarray:
    """The class of each pixel (H, W) of panoptic data, -1 for none."""
    segments = data.segments(image)
    labels = np.full(segments.shape, NO_SEGMENT)
    for found in image.objects:
        labels[segments == found.segment] = data.number_of(found.label)
    return labels


def _draw_boxes(
    data: Dataset, image: Image, picture: np.ndarray, objects: Sequence[Object]
) -> None:
    """Draw objects, the largest first. Regions without a class have the next free color."""
    ordered = sorted(objects, key=lambda one: -one.area)
    scale = np.divide(picture.shape[1::-1], image.size)
    boxes = np.reshape([one.box for one in ordered], (-1, 4)).astype(float)
    boxes[:, 2:] += boxes[:, :2]
    labels = [data.number_of(one.label) if one.label else len(data.classes) for one in ordered]
    texts = [
        _beginning(one.label or 'ignored', NAME_LETTERS)
        + (' (crowd)' if one.crowd and one.label else '')
        for one in ordered
    ]
    with_masks = data.task == 'instance' and all(one.segmentation for one in ordered)
    masks = (_mask(one, image.size, picture.shape[1::-1]) for one in ordered if with_masks)
    draw_objects(picture, boxes * np.tile(scale, 2), labels, texts, masks)


def _mask(found: Object, size: tuple[int, int], shown: tuple[int, int]) -> np.ndarray:
    """The mask of an object at the size of the picture."""
    if isinstance(found.segmentation, Mapping):
        return resized(object_mask(found, size), shown)
    scale = np.divide(shown, size)
    polygons = [
        (np.reshape(polygon, (-1, 2)) * scale).ravel().tolist()
        for polygon in found.segmentation or ()
    ]
    return object_mask(replace(found, segmentation=polygons), shown)


def _row(panels: Sequence[_Panel], width: int) -> np.ndarray:
    """Pictures side by side, each below its lines of text."""
    above = 2 * line_height(SIDE)
    height = above + max(panel.picture.shape[0] for panel in panels) + GAP
    row = np.full((height, width, 3), WHITE, np.uint8)
    for number, (picture, lines, _) in enumerate(panels):
        left = GAP + number * (SIDE + GAP)
        row[above : above + picture.shape[0], left : left + picture.shape[1]] = picture
        strip = np.full((above, SIDE, 3), WHITE, np.uint8)
        for place, line in enumerate(lines):
            write_line(strip, _beginning(line, LETTERS), (0, place * above // 2), WHITE)
        row[:above, left : left + SIDE] = strip
    return row


def _legend(shown: Sequence[int], classes: Sequence[str], width: int) -> Iterator[np.ndarray]:
    """Rows of class names, each on its color."""
    names = [(classes[label], color_of(label)) for label in shown[:LEGEND]]
    if len(shown) > LEGEND:
        names.append((f'and {len(shown) - LEGEND} more', WHITE))
    columns = max(LEGEND_COLUMNS * (width - GAP) // (COLUMNS * (SIDE + GAP)), 1)
    for start in range(0, len(names), columns):
        strip = np.full((line_height(SIDE) + GAP, width, 3), WHITE, np.uint8)
        for place, (name, color) in enumerate(names[start : start + columns]):
            cell = np.full((line_height(SIDE), width // columns - GAP, 3), WHITE, np.uint8)
            write_line(cell, _beginning(name, NAME_LETTERS), (0, 0), color)
            left = GAP + place * (width - GAP) // columns
            strip[: cell.shape[0], left : left + cell.shape[1]] = cell[:, : width - left]
        yield strip


def _beginning(text: str, most: int) -> str:
    return text if len(text) <= most else f'{text[: most - 3]}...'


def _ending(text: str) -> str:
    """Shorten a path at its beginning, since files differ at the end."""
    return text if len(text) <= LETTERS else f'...{text[3 - LETTERS :]}'


def encoded(picture: np.ndarray) -> bytes:
    """An RGB picture as PNG."""
    return cv2.imencode('.png', np.ascontiguousarray(picture[..., ::-1]))[1].tobytes()
