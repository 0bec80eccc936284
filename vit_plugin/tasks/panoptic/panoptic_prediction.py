"""Prediction of panoptic segmentation, as a map of classes."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vit_plugin.tasks.segmentation.map_prediction import MapPrediction

SEGMENT_OFFSET = 1000  # a pixel in MMDetection's panoptic maps is class + 1000 * object


class PanopticPrediction(MapPrediction):
    """The class of each pixel; things of one class are not distinguished."""

    # Overrides attributes of Prediction, which describes them.
    output = ''  # an exported file does not output segments

    @classmethod
    def has(cls, sample: Any) -> bool:
        return 'pred_panoptic_seg' in sample

    @classmethod
    def of_sample(cls, sample: Any, classes: Sequence[str], model: Any) -> MapPrediction:
        classes_map = sample.pred_panoptic_seg.sem_seg % SEGMENT_OFFSET
        # MMDetection fills void with len(classes).
        return cls.of_map(classes_map[0].numpy(), [*classes, 'no segment'], sample)

    @classmethod
    def of_outputs(
        cls,
        outputs: Mapping[str, np.ndarray],
        size: tuple[int, int],
        placed: Any,
        facts: Mapping[str, Any],
    ) -> None:
        return None
