"""The classes of masks, and the class of each value that the masks have."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

NOT_LABELED = 255  # the class number of pixels without a class


@dataclass
class MaskValues:
    """The classes of a data set's masks, and the class of each value that the masks have.

    Attributes:
        classes: the class names.
        numbers: the class number of each value; 255 for a value without a class.
        by_color: whether masks with a palette are read by its colors.
    """

    classes: tuple[str, ...]
    numbers: Mapping[int, int]
    by_color: bool = False

    def apply(self, values: np.ndarray) -> np.ndarray:
        """The classes (H, W), uint8, of values (H, W)."""
        distinct, index = np.unique(values, return_inverse=True)
        numbers = np.array([self.numbers[value] for value in distinct.tolist()], np.uint8)
        return numbers[index].reshape(values.shape)
