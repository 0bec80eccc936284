"""Run a detector on overlapping slices of a large image (SAHI, arXiv:2202.06934).

supervision's ``InferenceSlicer`` cuts the slices.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vit_plugin.errors import ConfigError, needed_by
from vit_plugin.files.tiles import OVERLAP

from .predictions import Prediction, names_of

MERGE_OVERLAP = 0.5  # boxes are one object if they share this part of the smaller one


@dataclass
class SlicedDetector:
    """Finds small objects in slices of an image, and large ones in the whole.

    Args:
        predict: a detector: images (H, W, 3) -> predictions.
        side: side of a slice, in pixels of the image.
        classes: the names of the classes.
        score_thr: lowest score of a box that is kept.
        batch_size: slices that are computed at once.
        max_boxes: number of highest-scoring boxes to keep per slice. None: all.

    Raises:
        MissingExtraError: if supervision is not installed.
    """

    predict: Callable[[Sequence[np.ndarray]], list[Prediction]]
    side: int
    classes: Sequence[str]
    score_thr: float = 0.05
    batch_size: int = 1
    max_boxes: int | None = None

    def __post_init__(self) -> None:
        with needed_by('--slices'):
            import supervision as sv
        self._sv: Any = sv  # the optional package, for the other methods
        self.slicer = sv.InferenceSlicer(
            self._predict_detections if self.batch_size > 1 else self._predict_one,
            slice_wh=self.side,
            overlap_wh=round(OVERLAP * self.side),
            overlap_filter='none',
            compact_masks=True,
            batch_size=self.batch_size,
        )

    def __call__(self, images: Sequence[np.ndarray]) -> list[Prediction]:
        """Predictions for images (H, W, 3) in BGR.

        Raises:
            ConfigError: if the model is not a detector.
        """
        return [self._predict_whole_and_slices(image) for image in images]

    def _predict_whole_and_slices(self, image: np.ndarray) -> Prediction:
        (whole,) = self.predict([image])
        objects = self._detections(whole)
        if max(image.shape[:2]) > self.side:
            in_slices = self.slicer(image)
            in_slices.metadata.clear()  # merge() rejects metadata that differ
            objects = self._sv.Detections.merge([objects, in_slices])
            # Crop masks to their object instead of their slice, as those of the whole image are.
            if hasattr(objects.mask, 'repack'):
                objects.mask = objects.mask.repack()
        objects = objects.with_nms(MERGE_OVERLAP, overlap_metric=self._sv.OverlapMetric.IOS)
        objects = objects[np.argsort(-objects.confidence, kind='stable')]
        masks = None if objects.mask is None else np.asarray(objects.mask)
        names = names_of(objects.class_id, self.classes)
        return replace(
            whole,
            sample=None,
            labels=objects.class_id,
            names=names,
            scores=objects.confidence,
            boxes=objects.xyxy,
            masks=masks,
        )

    def _predict_one(self, image: np.ndarray) -> Any:
        return self._predict_detections([image])[0]

    def _predict_detections(self, images: Sequence[np.ndarray]) -> list[Any]:
        """Predictions for images, as supervision's detections."""
        return [self._detections(prediction) for prediction in self.predict(images)]

    def _detections(self, prediction: Prediction) -> Any:
        if prediction.boxes is None:
            raise ConfigError(
                '--slices is for detectors, and this model finds no boxes; leave it out.'
            )
        (keep,) = (prediction.scores > self.score_thr).nonzero()
        keep = keep[: self.max_boxes]  # the most confident are first
        masks = None if prediction.masks is None else prediction.masks[keep].astype(bool)
        return self._sv.Detections(
            prediction.boxes[keep],
            masks,
            prediction.scores[keep],
            prediction.labels[keep].astype(int),
        )
