"""Labels of a data set, as a task declares them for charts and pictures of the data."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vit_plugin.data.unreadable import unreadable_file

from .image_grid import Panel

# Samples whose labels are counted. Each is read with `get_data_info`, which takes microseconds.
MAX_COUNTED_SAMPLES = 10_000

# A data set, indices of its samples and the number of classes -> the labels of each class, and
# boxes (N, 4) as shares of their images, if the labels have any.
CountLabels = Callable[[Any, Sequence[int], int], tuple[np.ndarray, np.ndarray | None]]


def no_panels(sample: Any) -> list[Panel]:
    """The default of ``panels``, for labels that are drawn over their image."""
    return []


@dataclass(frozen=True)
class DataLabels:
    """Labels of the data sets of a task.

    Attributes:
        field: the key of the labels in ``dataset.get_data_info(i)``.
        unit: the name of what is counted; ``'images'`` if each image has one label.
        count: counts the labels of each class. None: there are no classes.
        limit: largest number of samples whose labels are counted, evenly spaced in a data set.
        panels: a sample after augmentation -> what is drawn next to its image, such as a depth map.
    """

    field: str
    unit: str = ''
    count: CountLabels | None = None
    limit: int = MAX_COUNTED_SAMPLES
    panels: Callable[[Any], list[Panel]] = no_panels


def readable(dataset: Any, indices: Sequence[int], read: Callable[[int], Any]) -> Iterator[Any]:
    """Yield the item at each index. Skip unreadable files, which the run itself reports."""
    for index in indices:
        try:
            yield read(index)
        except Exception as error:
            if not unreadable_file(error, dataset, index):
                raise


def find_transforms(dataset: Any) -> Sequence[Any]:
    """The transforms of a data set, below its wrappers."""
    while hasattr(dataset, 'dataset') or hasattr(dataset, 'datasets'):
        dataset = dataset.dataset if hasattr(dataset, 'dataset') else dataset.datasets[0]
    return dataset.pipeline.transforms
