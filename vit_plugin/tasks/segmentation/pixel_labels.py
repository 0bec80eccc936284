"""Classes of pixels, counted for the chart of a data set."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from vit_plugin.report.pictures.annotations import IGNORED_PIXEL
from vit_plugin.report.pictures.data_labels import DataLabels, find_transforms, readable

COUNTED_MASKS = 200  # largest number of masks that are read to count their pixels


def count_pixels(
    dataset: Any, indices: Sequence[int], classes: int
) -> tuple[np.ndarray, np.ndarray | None]:
    """Count the pixels of each class, after the steps up to the one that reads the mask."""
    counts = np.zeros(classes, int)

    def with_mask(index: int) -> Any:
        info = dataset.get_data_info(index)
        for step in find_transforms(dataset):
            info = step(info)
            if info is None or 'gt_seg_map' in info:
                break
        return info

    for info in readable(dataset, indices, with_mask):
        values = np.asarray((info or {}).get('gt_seg_map', IGNORED_PIXEL)).ravel()
        counts += np.bincount(values[values < classes], minlength=classes)
    return counts, None


PIXEL_LABELS = DataLabels('seg_map_path', unit='pixels', count=count_pixels, limit=COUNTED_MASKS)
