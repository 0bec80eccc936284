"""Prediction of a classifier: as text, as a picture, and from an exported file."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from anyfolder.pictures.drawn_labels import WHITE, draw_legend
from vit_plugin.inference.predictions import NUM_TOP, Prediction, names_of


class ClassPrediction(Prediction):
    """The probability of each class, the most probable first."""

    # Overrides attributes of Prediction, which describes them.
    output = 'logits'
    lists_classes = True
    columns = ('class', 'score')

    @classmethod
    def of_scores(
        cls, scores: np.ndarray, classes: Sequence[str], sample: Any = None
    ) -> 'ClassPrediction':
        """The prediction by the probability of each class (C)."""
        order = np.argsort(-scores, kind='stable')
        return cls(sample, order, names_of(order, classes), scores[order])

    @classmethod
    def has(cls, sample: Any) -> bool:
        return 'pred_score' in sample

    @classmethod
    def of_sample(cls, sample: Any, classes: Sequence[str], model: Any) -> 'ClassPrediction':
        return cls.of_scores(sample.pred_score.float().numpy(), classes, sample)

    @classmethod
    def of_outputs(
        cls,
        outputs: Mapping[str, np.ndarray],
        size: tuple[int, int],
        placed: Any,
        facts: Mapping[str, Any],
    ) -> 'ClassPrediction | None':
        logits = outputs.get('logits')
        if logits is None or logits.ndim != 1:
            return None
        exps = np.exp(logits - logits.max())
        scores = 1 / (1 + np.exp(-logits)) if facts['multi_label'] else exps / exps.sum()
        return cls.of_scores(scores, facts['classes'])

    def values(self, score_thr: float) -> Iterable[Sequence[Any]]:
        return islice(zip(self.names, self.scores.tolist(), strict=True), NUM_TOP)

    def text(self, score_thr: float = 0.0) -> str:
        return ', '.join(f'{row["class"]} {row["score"]:.2f}' for row in self.rows())

    def drawn(self, picture: np.ndarray, times: int, score_thr: float) -> np.ndarray:
        """The image with a legend of the most probable classes."""
        entries = [(f'{row["class"]} {row["score"]:.2f}', WHITE) for row in self.rows()]
        draw_legend(picture, entries)
        return picture

    def difference_from(self, wanted: 'ClassPrediction') -> float:
        """The largest difference of a class score."""
        actual = self.scores[np.argsort(self.labels)]
        expected = wanted.scores[np.argsort(wanted.labels)]
        return float(np.abs(actual - expected).max())
