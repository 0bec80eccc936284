"""Outcomes that keep only those maps that may be drawn."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from anyfolder.pictures.scaled_pictures import SIDE

from .outcomes import Outcomes


class Maps(NamedTuple):
    """The true and the predicted map of an image, as they are drawn."""

    true: np.ndarray
    predicted: np.ndarray


class KeptMaps(Outcomes):
    """Maps (H, W) of images. A subclass adds the error of each image to ``_errors``."""

    # Overrides attributes of Outcomes, which describes them.
    per_image = 3
    _seen: dict[int, Maps]  # maps of images that may be drawn

    def __init__(self, classes: Sequence[str], size: int) -> None:
        super().__init__(classes, size)
        self._errors: dict[int, float] = {}

    def _keep(self, position: int, maps: Maps) -> None:
        """Keep the maps of an image if it may be drawn."""
        every = -(-max(maps.true.shape) // SIDE)
        self._seen[position] = Maps(*(pixel_map[::every, ::every].copy() for pixel_map in maps))
        if len(self._seen) > 8 * self.shown:
            self._forget()

    def join(self, other: Outcomes) -> None:
        assert isinstance(other, KeptMaps)
        super().join(other)
        self._errors |= other._errors
        self._forget()

    def _forget(self) -> None:
        """Drop maps that can no longer be drawn."""
        ranked = sorted(self._errors, key=lambda position: (-self._errors[position], position))
        drawn = {*self.examples, *ranked[: self.shown], *ranked[-self.shown :]}
        self._seen = {position: maps for position, maps in self._seen.items() if position in drawn}

    def errors(self) -> dict[int, float]:
        return self._errors
