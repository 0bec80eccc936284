"""Prediction of a detector: as text, as a picture, and from an exported file."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import cv2
import numpy as np

from anyfolder.pictures.drawn_labels import draw_legend, draw_objects, enlarged
from anyfolder.pictures.palette import color_of
from vit_plugin.inference import SCORE_THR
from vit_plugin.inference.predictions import Prediction, names_of

SIDES = ('left', 'top', 'right', 'bottom')


class BoxPrediction(Prediction):
    """Boxes of objects with their classes and scores, and masks if the model predicts them."""

    # Overrides attributes of Prediction, which describes them.
    output = 'boxes'
    has_threshold = True
    columns = ('class', 'score', *SIDES)

    @classmethod
    def has(cls, sample: Any) -> bool:
        return 'pred_instances' in sample

    @classmethod
    def of_sample(cls, sample: Any, classes: Sequence[str], model: Any) -> 'BoxPrediction':
        instances = sample.pred_instances
        instances = instances[instances.scores.argsort(descending=True, stable=True)]
        masks = instances.masks.numpy() if 'masks' in instances else None
        return cls(
            sample,
            instances.labels.numpy(),
            names_of(instances.labels, classes),
            instances.scores.float().numpy(),
            instances.bboxes.float().numpy(),
            masks,
        )

    @classmethod
    def of_outputs(
        cls,
        outputs: Mapping[str, np.ndarray],
        size: tuple[int, int],
        placed: Any,
        facts: Mapping[str, Any],
    ) -> 'BoxPrediction | None':
        if 'boxes' not in outputs:
            return None
        height, width = size
        boxes = (outputs['boxes'] - np.tile(placed.offset, 2)) / np.tile(placed.scale, 2)
        is_box = outputs['scores'] > 0  # images in a batch are padded with boxes of score 0
        boxes = boxes.clip(0, (width, height, width, height))[is_box]
        labels, scores = outputs['labels'][is_box], outputs['scores'][is_box]
        masks = None
        if 'masks' in outputs:
            resized = [mask_on(mask, placed, (width, height)) for mask in outputs['masks'][is_box]]
            masks = np.array(resized, bool).reshape(-1, height, width)
        names = names_of(labels, facts['classes'])
        return cls(sample=None, labels=labels, names=names, scores=scores, boxes=boxes, masks=masks)

    def values(self, score_thr: float) -> Iterable[Sequence[Any]]:
        assert self.boxes is not None
        table = zip(self.names, self.scores.tolist(), self.boxes.tolist(), strict=True)
        return ((name, score, *box) for name, score, box in table if score > score_thr)

    def text(self, score_thr: float = SCORE_THR) -> str:
        """The boxes counted by class."""
        counts = Counter(row['class'] for row in self.rows(score_thr)).most_common()
        return ', '.join(f'{count} {name}' for name, count in counts) or 'nothing'

    def drawn(self, picture: np.ndarray, times: int, score_thr: float) -> np.ndarray:
        """The image with boxes above the score, their masks and their classes.

        If labels would cover much of the picture, a legend with counts replaces them.
        """
        assert self.boxes is not None
        shown = np.flatnonzero(self.scores > score_thr)[::-1]  # the most confident is drawn last
        names, labels = [self.names[i] for i in shown], self.labels[shown].tolist()
        texts = [f'{name} {self.scores[i]:.2f}' for name, i in zip(names, shown, strict=True)]
        masks = self.masks
        regions = () if masks is None else (enlarged(masks[i], times) for i in shown)
        if not draw_objects(picture, self.boxes[shown] * times, labels, texts, regions):
            counts = Counter(zip(names, labels, strict=True)).most_common()
            entries = [(f'{count} {name}', color_of(label)) for (name, label), count in counts]
            draw_legend(picture, entries)
        return picture

    def difference_from(self, wanted: 'BoxPrediction') -> float:
        """The distance of boxes to the nearest box of their class, in both directions."""
        import torch

        from vit_plugin.tasks.detection.deployed_detectors import box_distance, nearest_distances

        actual, expected = self._tensors(), wanted._tensors()
        # The file also returns boxes below the score_thr of a test, which have no counterpart.
        likely = [values[actual[1] >= SCORE_THR] for values in actual]
        distances = nearest_distances(*expected, *actual), nearest_distances(*likely, *expected)
        return box_distance(torch.cat(distances))

    def _tensors(self) -> list[Any]:
        """Boxes (N, 4), their scores (N) and classes (N)."""
        import torch

        return [torch.as_tensor(values) for values in (self.boxes, self.scores, self.labels)]


def mask_on(logits: np.ndarray, placed: Any, size: tuple[int, int]) -> np.ndarray:
    """Mask logits (h, w) at the model's input -> a mask (H, W) of the image.

    Args:
        logits: the mask's logits.
        placed: the image after the transforms, a ``PlacedPixels``.
        size: width and height of the image.
    """
    height, width = placed.unpadded_size
    if (height, width) != placed.pixels.shape[:2]:
        rows, columns = placed.pixels.shape[:2]
        logits = cv2.resize(logits, (columns, rows))[:height, :width]
    return cv2.resize(logits, size) > 0
