"""Outcomes of a segmentor, also of segments that are things or stuff."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from anyfolder.pictures.drawn_labels import background_of
from anyfolder.pictures.scaled_pictures import SIDE

from ..pictures import draw_confusion_matrix
from ..pictures.annotations import IGNORED, Annotations, as_array, errors_of
from ..pictures.class_scores import map_scores
from ..pictures.image_grid import Panel
from .outcomes import Outcomes

OFFSET = 1000  # of the numbers of things of a class, in MMDetection's panoptic maps


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
        self._matrix = np.zeros((len(classes) + 1,) * 2, dtype=np.int64)  # the last: no class
        self._errors: dict[int, float] = {}

    @classmethod
    def has(cls, sample: Any) -> bool:
        return 'gt_sem_seg' in sample and 'pred_sem_seg' in sample

    def maps_of(self, sample: Any) -> tuple[Tensor, Tensor]:
        """The true and the predicted classes of pixels (1, H, W), in any numbers where none is."""
        return sample.gt_sem_seg.data, sample.pred_sem_seg.data

    def add(self, position: int, sample: Any) -> None:
        true, predicted = (one.squeeze(0).long() for one in self.maps_of(sample))
        true, number = true.to(predicted.device), len(self.classes)
        known, rows = true < number, number + 1
        found = true[known] * rows + predicted[known].clamp(max=number)
        matrix = torch.bincount(found, minlength=rows**2).reshape(rows, rows).cpu().numpy()
        self._matrix += matrix
        right = np.diag(matrix)[:-1]
        there = (matrix.sum(axis=0) + matrix.sum(axis=1))[:-1]
        present = there > 0
        if present.any():
            shares = right[present] / (there - right)[present]
            self._errors[position] = 100 - 100 * float(shares.mean())
        predicted = predicted.masked_fill(predicted >= number, IGNORED)
        self._keep(position, Maps(*(as_array(one).astype(np.int16) for one in (true, predicted))))

    def _keep(self, position: int, maps: Maps) -> None:
        """Keep what may be drawn of an image."""
        every = -(-max(maps.true.shape) // SIDE)
        self._seen[position] = Maps(*(one[::every, ::every].copy() for one in maps))
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
        return self._matrix[:-1, :-1]

    def figures(self) -> Iterator[tuple[str, Figure]]:
        yield (
            'confusion_matrix',
            draw_confusion_matrix(self.confusion_matrix(), self.classes, 'pixels'),
        )

    def errors(self) -> dict[int, float]:
        return self._errors

    def panels(self, position: int, image: np.ndarray) -> list[Panel]:
        maps = self._seen[position]
        score = f', mIoU {100 - self._errors[position]:.1f} %' if position in self._errors else ''
        known = maps.true < len(self.classes)
        errors = errors_of(*maps, known, [*background_of(enumerate(self.classes)), IGNORED])
        share = 100 * np.count_nonzero(errors) / max(np.count_nonzero(known), 1)
        return [
            Panel(image, Annotations(image.shape[:2], map=maps.true), 'true'),
            Panel(image, Annotations(image.shape[:2], map=maps.predicted), f'predicted{score}'),
            Panel(image, Annotations(image.shape[:2], errors=errors), f'{share:.1f} % are wrong'),
        ]


class PanopticOutcomes(MapOutcomes):
    """The classes of the pixels of segments, whichever thing of a class a segment is."""

    @classmethod
    def has(cls, sample: Any) -> bool:
        return 'gt_sem_seg' in sample and 'pred_panoptic_seg' in sample

    def maps_of(self, sample: Any) -> tuple[Tensor, Tensor]:
        return sample.gt_sem_seg.sem_seg, sample.pred_panoptic_seg.sem_seg % OFFSET
