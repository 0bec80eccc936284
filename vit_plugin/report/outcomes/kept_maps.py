"""Outcomes with a map for each image, of which only those that may be drawn are kept."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from anyfolder.pictures.scaled_pictures import SIDE

from .outcomes import Outcomes

# Maps are pruned when there are more than this many pages of them. Pruning sorts all errors, so it
# should be rare.
MAX_KEPT_PAGES = 8


class Maps(NamedTuple):
    """The true and the predicted map of an image, as they are drawn."""

    true: np.ndarray
    predicted: np.ndarray


class KeptMaps(Outcomes):
    """Outcomes with a true and a predicted map (H, W) for each image.

    A subclass passes each image to :meth:`_keep`.
    """

    # Overrides attributes of Outcomes, which describes them.
    panels_per_image = 3  # ground truth, prediction, and the image or the errors
    _seen: dict[int, Maps]  # maps of images that may be drawn

    def __init__(self, classes: Sequence[str], size: int) -> None:
        super().__init__(classes, size)
        self._errors: dict[int, float] = {}

    def _keep(self, position: int, maps: Maps, error: float | None) -> None:
        """Keep the maps of an image, reduced to the size of a panel, and prune all now and then.

        Args:
            position: position of the image in the data set.
            maps: its maps.
            error: its error, by which images are ranked. None: it has no labeled pixels.
        """
        if error is not None:
            self._errors[position] = error
        stride = math.ceil(max(maps.true.shape) / SIDE)
        self._seen[position] = Maps(*(pixel_map[::stride, ::stride].copy() for pixel_map in maps))
        if len(self._seen) > MAX_KEPT_PAGES * self.images_per_page:
            self._prune()

    def join(self, other: Outcomes) -> None:
        assert isinstance(other, KeptMaps)
        super().join(other)
        self._errors |= other._errors
        self._prune()

    def _prune(self) -> None:
        """Drop maps that can no longer be drawn.

        The examples, the worst and the best images remain, which include all of :meth:`pages`.
        """
        ranked = sorted(self._errors, key=lambda position: (-self._errors[position], position))
        kept = {*self.examples, *ranked[: self.images_per_page], *ranked[-self.images_per_page :]}
        self._seen = {position: maps for position, maps in self._seen.items() if position in kept}

    def errors(self) -> dict[int, float]:
        return self._errors
