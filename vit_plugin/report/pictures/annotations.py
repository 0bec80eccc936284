"""Ground truth and predictions for an image, as arrays to compare and to draw."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from torch import Tensor

IGNORED_PIXEL = 255  # the value of a pixel that has no class
# Kinds of wrong pixels, and their colors, which no class uses.
ERRORS = {'missed': '#FFFFFF', 'invented': '#000000', 'another class': '#F0E442'}
MIN_NAMED_SHARE = 0.02  # classes with a smaller share of a mixed image are not named
MAX_NAMED_SHARES = 3  # classes that the caption of a mixed image names


@dataclass(frozen=True)
class Instances:
    """Boxes, and their masks if there are any.

    Args:
        boxes: left, top, right and bottom in pixels, of shape (N, 4).
        labels: their classes, of shape (N,).
        scores: their scores from 0 to 1, of shape (N,). None for ground truth.
        masks: one COCO RLE for each box, or None.
        crowd: whether each true box is a crowd, of shape (N,). A crowd counts neither as found nor
            as missed.
    """

    boxes: np.ndarray
    labels: np.ndarray
    scores: np.ndarray | None = None
    masks: Sequence[dict[str, Any]] | None = None
    crowd: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def where(self, keep: np.ndarray) -> 'Instances':
        """Select instances by a mask of shape (N,) or by indices, in their order."""
        return Instances(
            self.boxes[keep],
            self.labels[keep],
            None if self.scores is None else self.scores[keep],
            None if self.masks is None else [self.masks[i] for i in np.arange(len(self))[keep]],
            None if self.crowd is None else self.crowd[keep],
        )

    def dense_masks(self) -> Iterator[np.ndarray]:
        """The pixels (H, W) of each mask, one after the other."""
        if self.masks is not None:
            from pycocotools.mask import decode

            yield from map(decode, self.masks)

    def above(self, score: float) -> 'Instances':
        """Select the instances with at least this score."""
        return self if self.scores is None else self.where(self.scores >= score)

    @cached_property
    def objects(self) -> 'Instances':
        """Select the instances that are not crowds."""
        return self if self.crowd is None else self.where(~self.crowd)


@dataclass(frozen=True)
class Annotations:
    """The ground truth or the prediction to draw on an image.

    Args:
        frame: height and width in pixels of the image that boxes, masks and the map refer to.
        caption: the classes of the image, as text.
        instances: its boxes.
        map: the label map, the class of each pixel, of shape (H, W). It may be smaller than the
            frame.
        errors: the kind of error of each pixel, see :func:`classify_errors`, of the same shape.
    """

    frame: tuple[int, int]
    caption: str = ''
    instances: Instances | None = None
    map: np.ndarray | None = None
    errors: np.ndarray | None = None


def true_annotations(sample: Any, frame: tuple[int, int], classes: Sequence[str]) -> Annotations:
    """The ground truth in a data sample of MMPretrain, MMDetection or MMSegmentation."""
    return Annotations(frame, _caption(sample, classes), true_instances(sample), map_of(sample))


def true_instances(sample: Any) -> Instances | None:
    """The true objects of a sample and, after them, the crowds, see :func:`read_instances`."""
    true = read_instances(sample, 'gt_instances')
    ignored = read_instances(sample, 'ignored_instances')
    if true is None or ignored is None:
        return true
    have_masks = true.masks is not None and ignored.masks is not None
    return replace(
        true,
        boxes=np.concatenate((true.boxes, ignored.boxes)),
        labels=np.concatenate((true.labels, ignored.labels)),
        masks=[*(true.masks or ()), *(ignored.masks or ())] if have_masks else None,
        crowd=np.arange(len(true) + len(ignored)) >= len(true),
    )


def read_instances(sample: Any, name: str) -> Instances | None:
    """The boxes in this field of an MMDetection sample.

    None if it is missing, or if boxes are rotated.
    """
    instances = sample.get(name) if name in sample else None
    if instances is None or 'bboxes' not in instances or 'labels' not in instances:
        return None
    boxes = as_array(getattr(instances.bboxes, 'tensor', instances.bboxes))
    if len(boxes) and boxes.shape[1] != 4:
        return None
    masks = encode_masks(instances.masks) if 'masks' in instances else None
    scores = as_array(instances.scores) if 'scores' in instances else None
    return Instances(
        boxes.reshape(-1, 4).astype(np.float32), as_array(instances.labels), scores, masks
    )


def encode_masks(masks: Any) -> list[dict[str, Any]]:
    """Masks (N, H, W), of MMDetection or as a tensor, as COCO's RLE."""
    from pycocotools.mask import encode

    dense = masks.to_ndarray() if hasattr(masks, 'to_ndarray') else as_array(masks)
    return [encode(np.asfortranarray(mask, dtype=np.uint8)) for mask in dense]


def map_of(sample: Any) -> np.ndarray | None:
    """The true classes of pixels (H, W) in a sample of MMSegmentation."""
    if 'gt_sem_seg' not in sample:
        return None
    pixels = sample.gt_sem_seg  # MMDetection names it differently
    return as_array((pixels.data if 'data' in pixels else pixels.sem_seg).squeeze(0))


def classify_errors(
    true: np.ndarray, predicted: np.ndarray, known: np.ndarray, background: Sequence[int]
) -> np.ndarray:
    """The kind of error of each pixel (H, W): 0 for none, otherwise a row of :data:`ERRORS` from 1.

    Args:
        true, predicted: the classes of pixels (H, W).
        known: True where a pixel has a true class.
        background: the background classes: predicting one of them for an object misses it.
    """
    wrong = known & (true != predicted)
    missed, invented = np.isin(predicted, background), np.isin(true, background)
    return np.where(wrong, np.select([missed, invented], [1, 2], 3), 0)


def image_labels(sample: Any, name: str) -> tuple[int, ...] | None:
    """The classes of an image in a sample of MMPretrain."""
    labels = sample.get(name) if name in sample else None
    return None if labels is None else tuple(np.atleast_1d(as_array(labels)).tolist())


def as_array(values: Any) -> np.ndarray:
    """A tensor on any device, or an array, as an array."""
    return values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)


def class_name(label: int, classes: Sequence[str]) -> str:
    """The name of a class, or its number if it has none."""
    return str(classes[label]) if 0 <= label < len(classes) else str(label)


def _caption(sample: Any, classes: Sequence[str]) -> str:
    """The classes of an image, with their shares if images were mixed."""
    labels = image_labels(sample, 'gt_label')
    shares = sample.get('gt_score') if 'gt_score' in sample else None
    if shares is None:
        return ', '.join(class_name(label, classes) for label in labels or ())
    shares = as_array(shares)
    largest = np.argsort(-shares, kind='stable')[:MAX_NAMED_SHARES].tolist()
    named = [label for label in largest if shares[label] > MIN_NAMED_SHARE]
    names = [class_name(label, classes) for label in named]
    # Shares of mixed images sum to 1. Several labels of an unmixed image have the score 1 each.
    if len(named) < 2 or shares.sum() > 1.5:
        return ', '.join(names)
    return ', '.join(
        f'{name} {shares[label]:.2f}' for name, label in zip(names, named, strict=True)
    )
