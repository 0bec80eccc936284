"""Outcomes of a panoptic validation, compared by the class of each pixel."""

from typing import Any

from torch import Tensor

from vit_plugin.tasks.segmentation.map_outcomes import MapOutcomes

from .panoptic_prediction import SEGMENT_OFFSET


class PanopticOutcomes(MapOutcomes):
    """The class of each pixel; things of one class are not distinguished."""

    @classmethod
    def matches(cls, sample: Any) -> bool:
        return 'gt_sem_seg' in sample and 'pred_panoptic_seg' in sample

    def maps_of(self, sample: Any) -> tuple[Tensor, Tensor]:
        return sample.gt_sem_seg.sem_seg, sample.pred_panoptic_seg.sem_seg % SEGMENT_OFFSET
