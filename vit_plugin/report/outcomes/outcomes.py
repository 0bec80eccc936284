"""The base class of the outcomes of a validation, see :mod:`vit_plugin.report.outcomes`."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
from matplotlib.figure import Figure

from anyfolder.sampling import evenly_spaced

from ..pictures.annotations import class_name
from ..pictures.image_grid import Panel

PANELS = 16  # panels on a page


class Outcomes(ABC):
    """Ground truth and predictions for the images of a validation.

    Each process adds its images; the main process joins them with those of the others.

    Args:
        classes: names of the classes.
        size: number of images of the validation.
    """

    # True if scores take so long that they are only computed at the end of the run.
    expensive: ClassVar[bool] = False
    panels_per_image: ClassVar[int] = 1
    error_name: ClassVar[str]  # the error by which images are ranked, in words

    def __init__(self, classes: Sequence[str], size: int) -> None:
        self.classes, self.size = classes, size
        self._seen: dict[int, Any] = {}  # the record of each image, by its position
        # Positions of images that are drawn whatever their errors are.
        self.examples = evenly_spaced(size, self.images_per_page)

    @property
    def images_per_page(self) -> int:
        """Images on a page."""
        return PANELS // self.panels_per_image

    @classmethod
    def of_model(cls, model: Any, classes: Sequence[str], size: int) -> 'Outcomes':
        """Outcomes for the predictions of a model. A subclass may read its settings."""
        return cls(classes, size)

    @classmethod
    @abstractmethod
    def matches(cls, sample: Any) -> bool:
        """True if a data sample has a ground truth and a prediction of this task."""

    @abstractmethod
    def add(self, position: int, sample: Any) -> None:
        """Record the image at this position of the data set."""

    def join(self, other: 'Outcomes') -> None:
        """Take over the images that another process has recorded."""
        self._seen |= other._seen

    @abstractmethod
    def scores(self) -> dict[str, Any] | None:
        """Scores in per cent, see :mod:`~vit_plugin.report.pictures.class_scores`.

        None for a task without classes.
        """

    @abstractmethod
    def confusion_matrix(self) -> np.ndarray | None:
        """Counts of true (rows) and predicted (columns) classes.

        None for images with several labels, or without classes.
        """

    @abstractmethod
    def figures(self) -> Iterator[tuple[str, Figure]]:
        """Charts of the scores, with their names."""

    @abstractmethod
    def errors(self) -> dict[int, float]:
        """The error of each image that has one, by its position."""

    @abstractmethod
    def panels(self, position: int, image: np.ndarray) -> list[Panel]:
        """Ground truth and prediction for an image (H, W, 3), to draw."""

    def pages(self) -> dict[str, tuple[str, list[int]]]:
        """For each page of images its name, heading and the positions of its images."""
        errors = self.errors()
        order = sorted(errors, key=lambda position: (-errors[position], position))
        half = len(order) // 2  # so that no image is on both pages
        worst = [position for position in order[: len(order) - half] if errors[position] > 0]
        return {
            'val_predictions': ('images to validate', self.examples),
            'val_worst': (f'worst by {self.error_name}', worst[: self.images_per_page]),
            'val_best': (
                f'best by {self.error_name}',
                order[::-1][: min(self.images_per_page, half)],
            ),
        }

    def name(self, label: int) -> str:
        """The name of a class."""
        return class_name(label, self.classes)
