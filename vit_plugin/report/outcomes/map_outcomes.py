"""Outcomes of a segmentor."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from matplotlib.figure import Figure

from vit_plugin.inference.drawing import background_of

from ..pictures import draw_confusion_matrix
from ..pictures.annotate import SIDE
from ..pictures.annotations import Annotations, as_array, errors_of
from ..pictures.class_scores import map_scores
from ..pictures.image_grid import Panel
from .outcomes import Outcomes


class Maps(NamedTuple):
    """The true and the predicted map of an image, as they are drawn."""

    true: np.ndarray
    predicted: np.ndarray


class MapOutcomes(Outcomes):
    """The classes of pixels.

    The error of an image is 100 - mIoU over the classes that are there or predicted.
    """

    error, per_image = 'mIoU of the image', 3
    _seen: dict[int, Maps]  # of the images that may be drawn

    def __init__(self, classes: Sequence[str], size: int) -> None:
        super().__init__(classes, size)
        self._matrix = np.zeros((len(classes),) * 2, dtype=np.int64)
        self._errors: dict[int, float] = {}

    @classmethod
    def has(cls, sample: Any) -> bool:
        return 'gt_sem_seg' in sample and 'pred_sem_seg' in sample

    def add(self, position: int, sample: Any) -> None:
        true, predicted = (
            sample.get(name).data.squeeze(0).long() for name in ('gt_sem_seg', 'pred_sem_seg')
        )
        true, number = true.to(predicted.device), len(self.classes)
        known = true < number
        pairs = torch.bincount(true[known] * number + predicted[known], minlength=number**2)
        matrix = pairs.reshape(number, number).cpu().numpy()
        self._matrix += matrix
        right, there = np.diag(matrix), matrix.sum(axis=0) + matrix.sum(axis=1)
        present = there > 0
        if present.any():
            shares = right[present] / (there - right)[present]
            self._errors[position] = 100 - 100 * float(shares.mean())
        every = -(-max(true.shape) // SIDE)
        drawn = (
            as_array(values[::every, ::every]).astype(np.int16) for values in (true, predicted)
        )
        self._seen[position] = Maps(*drawn)
        if len(self._seen) > 8 * self.shown:
            self._forget()

    def join(self, other: Outcomes) -> None:
        assert isinstance(other, MapOutcomes)
        super().join(other)
        self._matrix += other._matrix
        self._errors |= other._errors
        self._forget()

    def _forget(self) -> None:
        """Keep the maps that are drawn if no other image comes."""
        ranked = sorted(self._errors, key=lambda position: (-self._errors[position], position))
        drawn = {*self.examples, *ranked[: self.shown], *ranked[-self.shown :]}
        self._seen = {position: maps for position, maps in self._seen.items() if position in drawn}

    def scores(self) -> dict[str, Any]:
        return map_scores(self._matrix, self.classes)

    def confusion_matrix(self) -> np.ndarray:
        return self._matrix

    def figures(self) -> Iterator[tuple[str, Figure]]:
        yield 'confusion_matrix', draw_confusion_matrix(self._matrix, self.classes, 'pixels')

    def errors(self) -> dict[int, float]:
        return self._errors

    def panels(self, position: int, image: np.ndarray) -> list[Panel]:
        maps = self._seen[position]
        score = f', mIoU {100 - self._errors[position]:.1f} %' if position in self._errors else ''
        known = maps.true < len(self.classes)
        errors = errors_of(*maps, known, background_of(enumerate(self.classes)))
        share = 100 * np.count_nonzero(errors) / max(np.count_nonzero(known), 1)
        return [
            Panel(image, Annotations(image.shape[:2], map=maps.true), 'true'),
            Panel(image, Annotations(image.shape[:2], map=maps.predicted), f'predicted{score}'),
            Panel(image, Annotations(image.shape[:2], errors=errors), f'{share:.1f} % are wrong'),
        ]
