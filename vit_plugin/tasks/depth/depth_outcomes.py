"""Outcomes of a depth model's validation: best and worst images."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from anyfolder.pictures.drawn_labels import colored
from vit_plugin.report.outcomes.kept_maps import KeptMaps, Maps
from vit_plugin.report.pictures.annotations import Annotations, as_array
from vit_plugin.report.pictures.image_grid import Panel


class DepthOutcomes(KeptMaps):
    """The depths of pixels. The error of an image is its AbsRel in per cent.

    A predicted disparity is first fitted to the true one by scale and shift.

    Attributes:
        target: what the model predicts, ``'depth'`` or ``'disparity'``.
    """

    target = 'depth'
    # Overrides attributes of Outcomes, which describes them.
    error_name = 'AbsRel of the image'

    @classmethod
    def of_model(cls, model: Any, classes: Sequence[str], size: int) -> 'DepthOutcomes':
        outcomes = cls(classes, size)
        outcomes.target = getattr(getattr(model, 'decode_head', None), 'target', cls.target)
        return outcomes

    @classmethod
    def matches(cls, sample: Any) -> bool:
        return 'gt_depth_map' in sample and 'pred_depth_map' in sample

    def add(self, position: int, sample: Any) -> None:
        true, predicted = (
            as_array(sample.get(name).data[0].float())
            for name in ('gt_depth_map', 'pred_depth_map')
        )
        known = true > 0  # 0: the depth was not measured
        error: float | None = None
        if known.any():
            if self.target == 'disparity':
                # Unlike np.polyfit, it takes a prediction that is 0 everywhere.
                columns = np.stack((predicted[known], np.ones(known.sum())), axis=1)
                scale, shift = np.linalg.lstsq(columns, 1 / true[known], rcond=None)[0]
                # No prediction is farther than the farthest true pixel, or behind the camera.
                predicted = 1 / np.maximum(scale * predicted + shift, 1 / true.max())
            error = 100 * float((np.abs(predicted - true)[known] / true[known]).mean())
        self._keep(position, Maps(true, predicted), error)

    def scores(self) -> None:
        """None, since there are no classes."""

    def confusion_matrix(self) -> None:
        """None, since there are no classes."""

    def figures(self) -> Iterator[tuple[str, Figure]]:
        return iter(())

    def panels(self, position: int, image: np.ndarray) -> list[Panel]:
        both_maps = np.hstack(self._seen[position])  # for one color scale
        true, predicted = np.split(colored(both_maps, in_meters=True), 2, axis=1)
        score = f', AbsRel {self._errors[position]:.1f} %' if position in self._errors else ''
        return [
            Panel(picture, Annotations(picture.shape[:2]), title)
            for picture, title in (
                (image, 'image'),
                (true, 'true'),
                (predicted, f'predicted{score}'),
            )
        ]
