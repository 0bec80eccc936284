"""Predictions of models, as arrays, plain values and text."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:  # a file in ONNX is asked without torch
    from mmengine.structures import BaseDataElement

from . import SCORE_THR

NUM_TOP = 5  # classes that are listed of an image
ENDS = ('least', 'median', 'most')  # of the depth of an image
PANOPTIC_OFFSET = 1000  # of MMDetection: a segment is class + 1000 * number
SIDES = ('left', 'top', 'right', 'bottom')


@dataclass(frozen=True)
class Prediction:
    """Predictions for an image, the most confident or largest first."""

    sample: 'BaseDataElement | None'  # the framework's own, if there is one
    # Every class of a classifier; the class of each box; the classes in a segmentor's map.
    labels: np.ndarray
    names: list[str]  # of these classes
    # For each name: probability of the class, score of the box, or share of the image.
    scores: np.ndarray
    # (boxes, 4): left, top, right and bottom in pixels of the image.
    boxes: np.ndarray | None = None
    masks: np.ndarray | None = None  # (boxes, H, W): the pixels of each instance
    map: np.ndarray | None = None  # (H, W): the number of the class of each pixel
    depth: np.ndarray | None = None  # (H, W): of each pixel
    unit: str = 'm'  # of the depth; nothing of a disparity, which is larger nearby

    @classmethod
    def of_depth(
        cls, depth: np.ndarray, target: str, sample: 'BaseDataElement | None' = None
    ) -> 'Prediction':
        """The prediction of a model whose target is a ``'depth'`` or a ``'disparity'`` (H, W)."""
        nothing = np.empty(0)
        unit = 'm' if target == 'depth' else ''
        return cls(sample, nothing, [], nothing, depth=depth, unit=unit)

    @classmethod
    def of_scores(
        cls, scores: np.ndarray, classes: Sequence[str], sample: 'BaseDataElement | None' = None
    ) -> 'Prediction':
        """The prediction of a classifier, by the probability of each class."""
        order = np.argsort(-scores, kind='stable')
        return cls(sample, order, names_of(order, classes), scores[order])

    @classmethod
    def of_map(
        cls, labels: np.ndarray, classes: Sequence[str], sample: 'BaseDataElement | None' = None
    ) -> 'Prediction':
        """The prediction of a segmentor, by the class of each pixel (H, W)."""
        found, counts = np.unique(labels, return_counts=True)
        order = np.argsort(-counts, kind='stable')
        names, shares = names_of(found[order], classes), counts[order] / counts.sum()
        return cls(sample, found[order], names, shares, map=labels)

    @classmethod
    def of(
        cls, sample: 'BaseDataElement', classes: Sequence[str], target: str | None = None
    ) -> 'Prediction':
        """The prediction in a sample of MMPretrain, MMDetection or MMSegmentation, on the CPU."""
        if 'pred_instances' in sample:
            found = sample.pred_instances
            found = found[found.scores.argsort(descending=True, stable=True)]
            masks = found.masks.numpy() if 'masks' in found else None
            return cls(
                sample,
                found.labels.numpy(),
                names_of(found.labels, classes),
                found.scores.float().numpy(),
                found.bboxes.float().numpy(),
                masks,
            )
        if target is not None:
            return cls.of_depth(sample.pred_depth_map.data[0].float().numpy(), target, sample)
        if 'pred_score' in sample:
            return cls.of_scores(sample.pred_score.float().numpy(), classes, sample)
        if 'pred_sem_seg' in sample:
            return cls.of_map(sample.pred_sem_seg.data[0].numpy(), classes, sample)
        # The class of each segment, without its number.
        found = sample.pred_panoptic_seg.sem_seg % PANOPTIC_OFFSET
        return cls.of_map(found[0].numpy(), [*classes, 'no segment'], sample)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the values in a row."""
        if self.boxes is not None:
            return ('class', 'score', *SIDES)
        if self.depth is not None:
            return ENDS
        return ('class', 'score') if self.map is None else ('class', 'share')

    def rows(self, score_thr: float = SCORE_THR) -> list[dict[str, Any]]:
        """Plain values by name: the top five classes, boxes above a score, or a map's classes."""
        table: Iterable[Sequence[Any]] = zip(self.names, self.scores.tolist(), strict=True)
        if self.depth is not None:
            table = [np.quantile(self.depth, (0, 0.5, 1)).tolist()]
        elif self.boxes is not None:
            boxed = zip(table, self.boxes.tolist(), strict=True)
            table = ((*entry, *box) for entry, box in boxed if entry[1] > score_thr)
        elif self.map is None:
            table = islice(table, NUM_TOP)
        return [dict(zip(self.columns, values, strict=True)) for values in table]

    def text(self, score_thr: float = SCORE_THR) -> str:
        """The rows in a line, boxes counted by class."""
        rows = self.rows(score_thr)
        if self.depth is not None:
            least, median, most = (f'{rows[0][name]:.2f} {self.unit}'.strip() for name in ENDS)
            what = 'depth' if self.unit else 'disparity'
            return f'{what} from {least} to {most}, {median} in the middle'
        if self.boxes is not None:
            counts = Counter(row['class'] for row in rows).most_common()
            return ', '.join(f'{count} {name}' for name, count in counts) or 'nothing'
        return ', '.join(
            f'{row["class"]} {row["share"]:.0%}'
            if 'share' in row
            else f'{row["class"]} {row["score"]:.2f}'
            for row in rows[:NUM_TOP]
        )


def names_of(labels: Iterable[int], classes: Sequence[str]) -> list[str]:
    """Names of classes. A nameless class is its number; a shared name is followed by the number."""
    counts = Counter(classes)
    names = [
        name if counts[name] == 1 else f'{name} ({label})' for label, name in enumerate(classes)
    ]
    return [names[label] if label < len(names) else str(label) for label in map(int, labels)]
