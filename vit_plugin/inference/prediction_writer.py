"""The base class of writers, which write predictions to one ``--out`` as they arrive."""

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

from .inputs import Frame, Input
from .predictions import Prediction


class PredictionWriter(AbstractContextManager):
    """The writer of one ``--out``.

    It is a context manager: when it ends, even by an error or Ctrl-C, its files are complete.

    Args:
        target: the file or folder.
        inputs: what is read.
        score_thr: lowest score of what is written, see :meth:`Prediction.rows`.
    """

    def __init__(self, target: Path, inputs: Sequence[Input], score_thr: float) -> None:
        self.target, self.inputs, self.score_thr = target, inputs, score_thr
        self._stack = ExitStack()

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    @abstractmethod
    def add(self, frame: Frame, prediction: Prediction) -> str:
        """Write the prediction for a frame.

        Returns the paths of its pictures, joined by commas, or an empty string.
        """
