"""Boxes of objects, counted for the chart of a data set."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from vit_plugin.report.pictures.data_labels import DataLabels


def count_objects(
    dataset: Any, indices: Sequence[int], classes: int
) -> tuple[np.ndarray, np.ndarray | None]:
    """Count the objects of each class without ignored ones, and return their relative boxes.

    Boxes in images of unknown size are left out.
    """
    counts, boxes = np.zeros(classes, int), []
    for info in map(dataset.get_data_info, indices):
        width, height = info.get('width') or np.nan, info.get('height') or np.nan
        objects = [instance for instance in info['instances'] if not instance.get('ignore_flag')]
        np.add.at(counts, [instance['bbox_label'] for instance in objects], 1)
        boxes += [
            np.divide(instance['bbox'], (width, height, width, height))
            for instance in objects
            if len(instance['bbox']) == 4  # not rotated
        ]
    relative = np.asarray(boxes, float).reshape(-1, 4)
    return counts, relative[np.isfinite(relative).all(axis=1)]


OBJECT_LABELS = DataLabels('instances', unit='objects', count=count_objects)
