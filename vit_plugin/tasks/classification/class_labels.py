"""Classes of images, counted for the chart of a data set."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from vit_plugin.report.pictures.data_labels import DataLabels


def count_images(
    dataset: Any, indices: Sequence[int], classes: int
) -> tuple[np.ndarray, np.ndarray | None]:
    """Count the images of each class. A multi-label image counts once for each of its classes."""
    labels = [np.atleast_1d(dataset.get_data_info(i)['gt_label']) for i in indices]
    return np.bincount(np.concatenate(labels).astype(int), minlength=classes)[:classes], None


CLASS_LABELS = DataLabels('gt_label', unit='images', count=count_images)
