"""Draw boxes, masks and label maps over an image."""

from collections.abc import Sequence

import numpy as np

from anyfolder.pictures.drawn_labels import background_of, draw_map, draw_objects
from anyfolder.pictures.scaled_pictures import resized, scaled

from .annotations import ERRORS, IGNORED_PIXEL, Annotations, Instances, class_name
from .style import shortened

MAX_NAME_LETTERS = 20  # letters of a name next to a box
MAX_DRAWN = 100  # predictions drawn in an image, those with the highest scores


def draw_annotations(
    image: np.ndarray, annotations: Annotations, classes: Sequence[str] = ()
) -> np.ndarray:
    """Draw annotations on a copy of an image with a longer side of 480 pixels.

    Args:
        image: RGB pixels (H, W, 3).
        annotations: what is drawn.
        classes: names of the classes.
    """
    picture = scaled(image)
    size = picture.shape[1], picture.shape[0]
    if annotations.map is not None:
        untinted = [IGNORED_PIXEL, *background_of(enumerate(classes))]
        draw_map(picture, resized(annotations.map, size), untinted)
    if annotations.errors is not None:
        picture = _gray(picture)
        for number, color in enumerate(ERRORS.values(), 1):
            picture[resized(annotations.errors == number, size)] = tuple(bytes.fromhex(color[1:]))
    if annotations.instances is not None:
        _draw_instances(picture, annotations.instances, annotations.frame, classes)
    return picture


def _gray(picture: np.ndarray) -> np.ndarray:
    """A picture in mid grays."""
    gray = 64 + picture.mean(axis=-1, keepdims=True) / 2
    return np.repeat(gray, 3, axis=-1).astype(np.uint8)


def _draw_instances(
    picture: np.ndarray, instances: Instances, frame: tuple[int, int], classes: Sequence[str]
) -> None:
    if instances.scores is not None:
        instances = instances.where(np.argsort(instances.scores, kind='stable')[-MAX_DRAWN:])
    height, width = picture.shape[:2]
    scale_x, scale_y = width / frame[1], height / frame[0]
    labels = instances.labels.astype(int).tolist()
    scores = [None] * len(labels) if instances.scores is None else instances.scores
    crowd = np.zeros(len(labels)) if instances.crowd is None else instances.crowd
    texts = [
        shortened(class_name(label, classes), MAX_NAME_LETTERS)
        + (f' {score:.2f}' if score else '')
        + (' (crowd)' if is_crowd else '')
        for label, score, is_crowd in zip(labels, scores, crowd, strict=True)
    ]
    draw_objects(
        picture,
        instances.boxes * np.array((scale_x, scale_y, scale_x, scale_y)),
        labels,
        texts,
        (resized(mask, (width, height)) for mask in instances.dense_masks()),
    )
