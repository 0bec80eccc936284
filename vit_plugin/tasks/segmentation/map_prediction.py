"""Prediction of a segmentor: as text, as a picture, and from an exported file."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from anyfolder.pictures.drawn_labels import WHITE, background_of, draw_legend, draw_map, enlarged
from anyfolder.pictures.palette import color_of
from vit_plugin.deploy.bilinear import bilinear
from vit_plugin.inference.predictions import NUM_TOP, Prediction, names_of


class MapPrediction(Prediction):
    """The class of each pixel, and the classes by their shares of the image."""

    # Overrides attributes of Prediction, which describes them.
    output = 'logits'
    of_pixels = True
    columns = ('class', 'share')

    @classmethod
    def of_map(
        cls, labels: np.ndarray, classes: Sequence[str], sample: Any = None
    ) -> 'MapPrediction':
        """The prediction by the class of each pixel (H, W)."""
        numbers, counts = np.unique(labels, return_counts=True)
        order = np.argsort(-counts, kind='stable')
        names, shares = names_of(numbers[order], classes), counts[order] / counts.sum()
        return cls(sample, numbers[order], names, shares, map=labels)

    @classmethod
    def has(cls, sample: Any) -> bool:
        return 'pred_sem_seg' in sample

    @classmethod
    def of_sample(cls, sample: Any, classes: Sequence[str], model: Any) -> 'MapPrediction':
        return cls.of_map(sample.pred_sem_seg.data[0].numpy(), classes, sample)

    @classmethod
    def facts_of(cls, model: Any) -> dict[str, Any]:
        """The threshold of a model with a single logit, which separates class 1 from class 0."""
        head: Any = getattr(model, 'decode_head', None)
        return dict(threshold=head.threshold) if getattr(head, 'out_channels', 0) == 1 else {}

    @classmethod
    def of_outputs(
        cls,
        outputs: Mapping[str, np.ndarray],
        size: tuple[int, int],
        placed: Any,
        facts: Mapping[str, Any],
    ) -> 'MapPrediction | None':
        logits = outputs.get('logits')
        if logits is None or logits.ndim != 3:
            return None
        rows, columns = placed.unpadded_size
        corners, threshold = facts.get('align_corners', False), facts.get('threshold')
        labels = best_class(logits[:, :rows, :columns], size, corners, threshold)
        return cls.of_map(labels, facts['classes'])

    def values(self, score_thr: float) -> Iterable[Sequence[Any]]:
        return zip(self.names, self.scores.tolist(), strict=True)

    def text(self, score_thr: float = 0.0) -> str:
        """The largest classes with their shares."""
        rows = islice(self.rows(), NUM_TOP)
        return ', '.join(f'{row["class"]} {row["share"]:.0%}' for row in rows)

    def drawn(self, picture: np.ndarray, times: int, score_thr: float) -> np.ndarray:
        """The image with the colors of the classes, and their legend."""
        assert self.map is not None
        classes = list(zip(self.labels.tolist(), self.names, strict=True))
        background = background_of(classes)
        draw_map(picture, enlarged(self.map, times), background)
        entries = [
            (f'{name} {share:.0%}', WHITE if label in background else color_of(label))
            for (label, name), share in zip(classes, self.scores, strict=True)
        ]
        draw_legend(picture, entries)
        return picture

    def difference_from(self, wanted: 'MapPrediction') -> float:
        """The share of pixels with another class."""
        assert self.map is not None
        assert wanted.map is not None
        return float(np.not_equal(self.map, wanted.map).mean())


def best_class(
    logits: np.ndarray,
    size: tuple[int, int],
    align_corners: bool = False,
    threshold: float | None = None,
) -> np.ndarray:
    """The class (H, W) of the largest logit (C, h, w), resized as in MMSegmentation.

    Args:
        logits: the logits of each class, of shape (C, h, w).
        size: H and W.
        align_corners: whether pixels in the corners stay in place.
        threshold: threshold for the probability of class 1, if that is the only logit.
    """
    labels = np.zeros(size, np.uint16)
    highest = bilinear(logits[0], size, align_corners)
    if threshold is not None:
        return (1 / (1 + np.exp(-highest)) > threshold).astype(np.uint16)
    # Resize one class at a time, since all may not fit in memory for a photograph.
    for label in range(1, len(logits)):
        class_logits = bilinear(logits[label], size, align_corners)
        is_higher = class_logits > highest
        labels[is_higher] = label
        highest[is_higher] = class_logits[is_higher]
    return labels
