"""Predictions, as arrays, plain values, text and pictures. Each task has its own subclass.

A prediction is made from a framework's data sample, or from the outputs of an exported file.
"""

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from anyfolder.pictures.drawn_labels import enlarged
from anyfolder.pixels.bands import as_photograph
from vit_plugin.task import task_declarations

if TYPE_CHECKING:  # an ONNX file runs without torch
    from mmengine.structures import BaseDataElement

from . import SCORE_THR

NUM_TOP = 5  # classes that are listed for an image
# Pixels of the longer side. Smaller images are enlarged, so that text is legible.
MIN_DRAWN_SIDE = 320


@dataclass(frozen=True)
class Prediction(ABC):
    """Predictions for an image, the most confident or largest first. Tasks have subclasses.

    Attributes:
        output: an output of an exported file that shows that the file predicts this class.
        columns: the names of the values in a row.
        of_pixels: whether the prediction has per-pixel values, so that a batch needs images of one
            original size.
        lists_classes: whether classes are listed, instead of drawn over the image.
        has_threshold: whether a score threshold applies.
    """

    sample: 'BaseDataElement | None'  # the framework's data sample, if there is one
    # Every class of a classifier; the class of each box; the classes in a segmentor's map.
    labels: np.ndarray
    names: list[str]  # names of these classes
    # For each name: probability of the class, score of the box, or share of the image.
    scores: np.ndarray
    # (boxes, 4): left, top, right and bottom in pixels of the image.
    boxes: np.ndarray | None = None
    masks: np.ndarray | None = None  # (boxes, H, W): the pixels of each instance
    map: np.ndarray | None = None  # (H, W): the number of the class of each pixel

    output: ClassVar[str]
    columns: ClassVar[tuple[str, ...]]
    of_pixels: ClassVar[bool] = False
    lists_classes: ClassVar[bool] = False
    has_threshold: ClassVar[bool] = False

    @staticmethod
    def of(sample: 'BaseDataElement', classes: Sequence[str], model: Any = None) -> 'Prediction':
        """The prediction in a sample of MMPretrain, MMDetection or MMSegmentation, on the CPU."""
        prediction = next(each for each in prediction_classes() if each.has(sample))
        return prediction.of_sample(sample, classes, model)

    @classmethod
    @abstractmethod
    def has(cls, sample: 'BaseDataElement') -> bool:
        """True if a sample has a prediction of this class."""

    @classmethod
    @abstractmethod
    def of_sample(
        cls, sample: 'BaseDataElement', classes: Sequence[str], model: Any
    ) -> 'Prediction':
        """The prediction in a sample for which :meth:`has` is true."""

    @classmethod
    def of_outputs(
        cls,
        outputs: Mapping[str, np.ndarray],
        size: tuple[int, int],
        placed: Any,
        facts: Mapping[str, Any],
    ) -> 'Prediction | None':
        """The prediction in the outputs of an exported file for an image, or None.

        Args:
            outputs: arrays by their names.
            size: height and width of the image.
            placed: the image after the steps of the pipeline, a
                :class:`~vit_plugin.deploy.pixel_steps.PlacedPixels`.
            facts: the file's metadata, see
                :class:`~vit_plugin.deploy.exported_model.ExportFacts` and :meth:`facts_of`.
        """
        return None

    @classmethod
    def facts_of(cls, model: Any) -> dict[str, Any]:
        """Metadata about a model's outputs, to export for :meth:`of_outputs` of this class only."""
        return {}

    @abstractmethod
    def values(self, score_thr: float) -> Iterable[Sequence[Any]]:
        """The values of each row."""

    @abstractmethod
    def text(self, score_thr: float = SCORE_THR) -> str:
        """The rows as one line of text."""

    @abstractmethod
    def drawn(self, picture: np.ndarray, times: int, score_thr: float) -> np.ndarray:
        """The picture (H', W', 3) in RGB of the prediction.

        Args:
            picture: the enlarged image; it may be changed.
            times: the factor by which the image was enlarged.
            score_thr: lowest score of what is drawn.
        """

    @abstractmethod
    def difference_from(self, wanted: Any) -> float:
        """The largest difference from another prediction of this class, from 0 to 1.

        For example, of a class score, or the share of pixels that differ.
        """

    def rows(self, score_thr: float = SCORE_THR) -> list[dict[str, Any]]:
        """Plain values by name: the top five classes, boxes above a score, or a map's classes."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.values(score_thr)]

    def arrays(self) -> dict[str, np.ndarray]:
        """Per-pixel float32 values to write next to a picture, by the ending of the file's name."""
        return {}


@cache
def prediction_classes() -> tuple[type[Prediction], ...]:
    """The subclasses of :class:`Prediction` that tasks declare, each once."""
    return tuple(map(resolve_name, dict.fromkeys(task_declarations('prediction').values())))


def names_of(labels: Iterable[int], classes: Sequence[str]) -> list[str]:
    """The names of these labels.

    A label without a name becomes its number; a name of several classes is followed by the number.
    """
    counts = Counter(classes)
    names = [
        name if counts[name] == 1 else f'{name} ({label})' for label, name in enumerate(classes)
    ]
    return [names[label] if 0 <= label < len(names) else str(label) for label in map(int, labels)]


def draw_prediction(image: np.ndarray, prediction: Prediction, score_thr: float) -> np.ndarray:
    """The picture (H', W', 3) in BGR of a prediction over its image (H, W, C).

    The class of the prediction decides what is drawn, and whether ``score_thr`` applies.
    """
    times = max(1, math.ceil(MIN_DRAWN_SIDE / max(image.shape[:2])))
    picture = np.ascontiguousarray(enlarged(as_photograph(image), times)[..., ::-1])
    picture = prediction.drawn(picture, times, score_thr)
    return np.ascontiguousarray(picture[..., ::-1])
