"""Outcomes of a segmentor's validation: scores, confusion matrix, best and worst images."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from anyfolder.pictures.drawn_labels import background_of
from vit_plugin.report.outcomes import Outcomes
from vit_plugin.report.outcomes.kept_maps import KeptMaps, Maps
from vit_plugin.report.pictures import draw_confusion_matrix
from vit_plugin.report.pictures.annotations import (
    IGNORED_PIXEL,
    Annotations,
    as_array,
    classify_errors,
)
from vit_plugin.report.pictures.class_scores import map_scores
from vit_plugin.report.pictures.image_grid import Panel


class MapOutcomes(KeptMaps):
    """The classes of pixels.

    The error of an image is 100 - mIoU over its true or predicted classes.
    """

    # Overrides attributes of Outcomes, which describes them.
    error_name = 'mIoU of the image'

    def __init__(self, classes: Sequence[str], size: int) -> None:
        super().__init__(classes, size)
        # Pixels by true (row) and predicted class (column); the last of both are without a class.
        self._matrix = np.zeros((len(classes) + 1, len(classes) + 1), dtype=np.int64)

    @classmethod
    def matches(cls, sample: Any) -> bool:
        return 'gt_sem_seg' in sample and 'pred_sem_seg' in sample

    def maps_of(self, sample: Any) -> tuple[Tensor, Tensor]:
        """The true and the predicted classes of pixels (1, H, W).

        A pixel without a class has any number that is not a class.
        """
        return sample.gt_sem_seg.data, sample.pred_sem_seg.data

    def add(self, position: int, sample: Any) -> None:
        true, predicted = (pixel_map.squeeze(0).long() for pixel_map in self.maps_of(sample))
        true, num_classes = true.to(predicted.device), len(self.classes)
        known, side = true < num_classes, num_classes + 1
        cells = true[known] * side + predicted[known].clamp(max=num_classes)
        matrix = torch.bincount(cells, minlength=side**2).reshape(side, side).cpu().numpy()
        self._matrix += matrix
        right = np.diag(matrix)[:-1]
        true_or_predicted = (matrix.sum(axis=0) + matrix.sum(axis=1))[:-1] - right
        present = true_or_predicted > 0
        error: float | None = None
        if present.any():
            ious = right[present] / true_or_predicted[present]
            error = 100 - 100 * float(ious.mean())
        predicted = predicted.masked_fill(predicted >= num_classes, IGNORED_PIXEL)
        maps = Maps(*(as_array(pixel_map).astype(np.int16) for pixel_map in (true, predicted)))
        self._keep(position, maps, error)

    def join(self, other: Outcomes) -> None:
        assert isinstance(other, MapOutcomes)
        super().join(other)
        self._matrix += other._matrix

    def scores(self) -> dict[str, Any]:
        return map_scores(self._matrix, self.classes)

    def confusion_matrix(self) -> np.ndarray:
        return self._matrix[:-1, :-1]

    def figures(self) -> Iterator[tuple[str, Figure]]:
        yield (
            'confusion_matrix',
            draw_confusion_matrix(self.confusion_matrix(), self.classes, unit='pixels'),
        )

    def panels(self, position: int, image: np.ndarray) -> list[Panel]:
        maps = self._seen[position]
        score = f', mIoU {100 - self._errors[position]:.1f} %' if position in self._errors else ''
        known = maps.true < len(self.classes)
        errors = classify_errors(
            *maps, known, [*background_of(enumerate(self.classes)), IGNORED_PIXEL]
        )
        share = 100 * np.count_nonzero(errors) / max(np.count_nonzero(known), 1)
        return [
            Panel(image, Annotations(image.shape[:2], map=maps.true), 'true'),
            Panel(image, Annotations(image.shape[:2], map=maps.predicted), f'predicted{score}'),
            Panel(image, Annotations(image.shape[:2], errors=errors), f'{share:.1f} % are wrong'),
        ]
