"""A sheet of images with their labels, as they are in the folder: nothing is augmented."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

import cv2
import numpy as np

from anyfolder.dataset import Dataset, Image, Object, object_mask
from anyfolder.pixels.bands import as_photograph
from anyfolder.readers.mask_classes import NOT_LABELED
from anyfolder.sampling import evenly_spaced

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
LETTERS = 44  # of a line above a picture
NAME_LETTERS = 20  # of a class at a box and in the legend
LEGEND = 24  # classes
LEGEND_COLUMNS = 8


class _Panel(NamedTuple):
    """A picture (H, W, 3) in RGB, two lines of text above it, and the classes that it shows."""

    picture: np.ndarray
    lines: tuple[str, str]
    classes: Sequence[int] = ()


def draw_sheet(data: Dataset) -> np.ndarray:
    """Draw the labels of at most 16 images, evenly over all splits.

    Above each image are its file, its split and its classes, or the number of its objects. Maps and
    boxes have a legend of the classes that are there, of at most 24.

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
    picture = scaled(np.ascontiguousarray(as_photograph(image.pixels())[..., ::-1]))
    name = _ending(data.name_of(image))
    if data.task == 'depth':
        depth = data.depth(image)
        known = depth[depth > 0]
        ends = f'{known.min():.2f} to {known.max():.2f} m' if known.size else 'not known'
        yield _Panel(picture, (name, split))
        yield _Panel(scaled(colored(depth, True)), ('', ends))
    elif data.task in ('segmentation', 'panoptic'):
        is_panoptic = data.task == 'panoptic'
        labels = _segment_classes(data, image) if is_panoptic else data.class_map(image)
        labels = resized(labels, (picture.shape[1], picture.shape[0]))
        none = -1 if is_panoptic else NOT_LABELED
        untinted = [none, *background_of(enumerate(data.classes))]
        draw_map(picture, labels, untinted)
        things = [one for one in image.objects if is_panoptic and _is_thing(data, one)]
        _draw_boxes(data, image, picture, things)
        present = [one for one in np.unique(labels).tolist() if one != none]
        names = ', '.join(data.classes[label] for label in present)
        text = _counted(things) if is_panoptic else names or 'not labeled'
        tinted = [label for label in present if label not in untinted]
        yield _Panel(picture, (name, f'{split}: {text}'), tinted)
    elif data.task == 'classification':
        yield _Panel(picture, (name, f'{split}: {", ".join(image.labels) or "no class"}'))
    else:
        _draw_boxes(data, image, picture, image.objects)
        present = [data.number_of(one.label) for one in image.objects if one.label]
        yield _Panel(picture, (name, f'{split}: {_counted(image.objects)}'), present)


def _counted(objects: Sequence[Object]) -> str:
    count = sum(not found.crowd for found in objects)
    return f'{count} object{"s" * (count != 1)}'


def _is_thing(data: Dataset, found: Object) -> bool:
    return data.number_of(found.label) < len(data.classes) - data.stuff


def _segment_classes(data: Dataset, image: Image) -> np.ndarray:
    """The class of each pixel (H, W) of panoptic data, -1 where there is none."""
    segments = data.segments(image)
    labels = np.full(segments.shape, -1)
    for found in image.objects:
        labels[segments == found.segment] = data.number_of(found.label)
    return labels


def _draw_boxes(
    data: Dataset, image: Image, picture: np.ndarray, objects: Sequence[Object]
) -> None:
    """Draw objects, the largest first. Regions of no class have the color after the classes'."""
    ordered = sorted(objects, key=lambda one: -one.area)
    scale = np.divide(picture.shape[1::-1], image.size)
    boxes = np.reshape([one.box for one in ordered], (-1, 4)).astype(float)
    boxes[:, 2:] += boxes[:, :2]
    labels = [data.number_of(one.label) if one.label else len(data.classes) for one in ordered]
    texts = [
        _beginning(one.label or 'ignored', NAME_LETTERS)
        + ' (crowd)' * (one.crowd and bool(one.label))
        for one in ordered
    ]
    with_masks = data.task == 'instance' and all(one.segmentation for one in ordered)
    masks = (_mask(one, image.size, picture.shape[1::-1]) for one in ordered if with_masks)
    draw_objects(picture, boxes * np.tile(scale, 2), labels, texts, masks)


def _mask(found: Object, size: tuple[int, int], shown: tuple[int, int]) -> np.ndarray:
    """The pixels of an object at the size of the picture."""
    if isinstance(found.segmentation, Mapping):
        return resized(object_mask(found, size), shown)
    scale = np.divide(shown, size)
    polygons = [
        (np.reshape(polygon, (-1, 2)) * scale).ravel().tolist()
        for polygon in found.segmentation or ()
    ]
    return object_mask(replace(found, segmentation=polygons), shown)


def _row(panels: Sequence[_Panel], width: int) -> np.ndarray:
    """Pictures side by side, each below its lines."""
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
    """Rows of the names of classes, each on its color."""
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
    """Files differ at the end."""
    return text if len(text) <= LETTERS else f'...{text[3 - LETTERS :]}'


def encoded(picture: np.ndarray) -> bytes:
    """An RGB picture as PNG."""
    return cv2.imencode('.png', np.ascontiguousarray(picture[..., ::-1]))[1].tobytes()
