"""Outcomes of a classifier's validation: scores, confusion matrix, best and worst images."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from vit_plugin.report.outcomes import Outcomes
from vit_plugin.report.pictures import draw_confusion_matrix
from vit_plugin.report.pictures.annotations import Annotations, as_array, image_labels
from vit_plugin.report.pictures.class_scores import class_scores, count_samples
from vit_plugin.report.pictures.image_grid import Panel

MIN_PROBABILITY = 1e-12  # smaller ones are raised to it, so that their logarithm is finite


class ClassOutcome(NamedTuple):
    """An image: its true and predicted classes, the scores of the predicted ones, and its loss."""

    true: tuple[int, ...]
    predicted: tuple[int, ...]
    scores: tuple[float, ...]
    loss: float


class ClassOutcomes(Outcomes):
    """Outcomes of single- and multi-label classification.

    The error of an image is its cross-entropy.
    """

    # Overrides attributes of Outcomes, which describes them.
    error_name = 'loss'

    _seen: dict[int, ClassOutcome]

    @classmethod
    def matches(cls, sample: Any) -> bool:
        return 'gt_label' in sample and 'pred_label' in sample

    def add(self, position: int, sample: Any) -> None:
        true = image_labels(sample, 'gt_label') or ()
        predicted = image_labels(sample, 'pred_label') or ()
        scores = as_array(sample.pred_score).astype(float) if 'pred_score' in sample else None
        predicted_scores = () if scores is None else tuple(scores[list(predicted)].tolist())
        self._seen[position] = ClassOutcome(
            true, predicted, predicted_scores, _loss(true, predicted, scores)
        )

    @property
    def _num_classes(self) -> int:
        """The number of named classes, or one more than the largest label."""
        labels = [label for seen in self._seen.values() for label in (*seen.true, *seen.predicted)]
        return len(self.classes) or max(labels, default=0) + 1

    def scores(self) -> dict[str, Any]:
        matrix = self.confusion_matrix()
        if matrix is not None:
            return class_scores(count_samples(matrix), self.classes)
        counts = np.zeros((3, self._num_classes), int)
        right, true, predicted = counts  # views of its rows, as class_scores takes them
        for seen in self._seen.values():
            right[list(set(seen.true) & set(seen.predicted))] += 1
            true[list(seen.true)] += 1
            predicted[list(seen.predicted)] += 1
        return class_scores(counts, self.classes)

    def confusion_matrix(self) -> np.ndarray | None:
        if not all(len(seen.true) == len(seen.predicted) == 1 for seen in self._seen.values()):
            return None
        matrix = np.zeros((self._num_classes, self._num_classes), int)
        pairs = [(seen.true[0], seen.predicted[0]) for seen in self._seen.values()]
        np.add.at(matrix, tuple(np.transpose(pairs)), 1)
        return matrix

    def figures(self) -> Iterator[tuple[str, Figure]]:
        matrix = self.confusion_matrix()
        if matrix is not None:
            yield 'confusion_matrix', draw_confusion_matrix(matrix, self.classes)

    def errors(self) -> dict[int, float]:
        return {position: seen.loss for position, seen in self._seen.items()}

    def panels(self, position: int, image: np.ndarray) -> list[Panel]:
        seen = self._seen[position]
        scores = [f' {score:.2f}' for score in seen.scores] or [''] * len(seen.predicted)
        names = map(self.name, seen.predicted)
        predicted = ', '.join(map(''.join, zip(names, scores, strict=True))) or 'nothing'
        is_right = set(seen.true) == set(seen.predicted)
        title = (
            predicted
            if is_right
            else f'{predicted}; true: {", ".join(map(self.name, seen.true)) or "nothing"}'
        )
        return [Panel(image, Annotations(image.shape[:2]), title, is_right)]


def _loss(true: Sequence[int], predicted: Sequence[int], scores: np.ndarray | None) -> float:
    """Cross-entropy of the true class, or the sum of binary cross-entropies of all classes.

    Without scores, it is 1 for a wrong prediction and 0 for a right one.
    """
    if scores is None:
        return float(set(true) != set(predicted))
    loss = -np.log(np.maximum(scores[list(true)], MIN_PROBABILITY)).sum()
    if len(true) == 1 and abs(scores.sum() - 1) < 0.01:  # the scores of a softmax
        return float(loss)
    absent = np.delete(scores, list(true))
    return float(loss - np.log(np.maximum(1 - absent, MIN_PROBABILITY)).sum())
