"""Average precision and F1 of boxes or masks, by pycocotools' evaluation."""

import contextlib
import io
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from vit_plugin.report.pictures.annotations import Instances
from vit_plugin.report.pictures.charts import DetectionCurve

MAX_DETECTIONS = 100  # predictions per image and class, as in COCO's AP
SCORE_THRESHOLDS = np.linspace(0, 1, 201)  # candidate score thresholds


class ValidatedImage(NamedTuple):
    """The height and width of an image, and its true and predicted objects."""

    frame: tuple[int, int]
    true: Instances
    predicted: Instances


class AveragePrecisionByClass:
    """pycocotools' evaluation of some images, with results for each class.

    Args:
        seen: the images by their position in the data set.
        classes: number of classes.
        iou_type: what is compared: ``'bbox'`` or ``'segm'``.

    Attributes:
        average_precision: AP, AP50 and AP75 of each class in per cent, NaN without objects, of
            shape (classes, 3).
        precision: in per cent, of shape (classes, IoU thresholds, recalls).
        recall: the recalls of ``precision`` in per cent, of shape (recalls,).
        objects: number of objects of each class that are not crowds, of shape (classes,).
        f1: F1 of each class in per cent at each of :data:`SCORE_THRESHOLDS` and an IoU of 0.5.
        mean_f1: its mean over the classes with objects.
        best_score: the score threshold with the highest ``mean_f1``.
    """

    def __init__(self, seen: Mapping[int, ValidatedImage], classes: int, iou_type: str) -> None:
        from pycocotools.cocoeval import COCOeval

        with contextlib.redirect_stdout(io.StringIO()):
            true, predicted = (
                _as_coco(seen, classes, name, iou_type) for name in ('true', 'predicted')
            )
            evaluation = COCOeval(true, predicted, iou_type)
            params = evaluation.params
            params.maxDets = [MAX_DETECTIONS]
            params.areaRng, params.areaRngLbl = [[0, 1e10]], ['all']
            evaluation.evaluate()
            evaluation.accumulate()
        precision = evaluation.eval['precision'][..., 0, 0]  # (IoUs, recalls, classes)
        precision = precision.transpose(2, 0, 1)
        self.precision = np.where(precision < 0, np.nan, 100 * precision)
        self.recall = 100 * params.recThrs
        ap = self.precision.mean(axis=(1, 2))
        # The IoU thresholds are 0.5, 0.55, ... 0.95.
        ap50, ap75 = self.precision[:, (0, 5)].mean(axis=2).T
        self.average_precision = np.stack((ap, ap50, ap75), axis=1)
        # COCOeval's results for each class (rows) in each image (columns). An entry is None without
        # objects and predictions. Its lists begin with the IoU threshold 0.5.
        self._images = np.array(evaluation.evalImgs, dtype=object).reshape(classes, len(seen))
        self._positions = params.imgIds
        self.objects = np.array(
            [sum(_count_objects(image) for image in row) for row in self._images]
        )
        self.f1 = np.stack(
            [
                self._compute_f1(row, number)
                for row, number in zip(self._images, self.objects, strict=True)
            ]
        )
        present = self.objects > 0
        self.mean_f1 = (
            self.f1[present].mean(axis=0) if present.any() else np.zeros(len(SCORE_THRESHOLDS))
        )
        # The middle of the thresholds with the highest F1.
        highest = np.flatnonzero(self.mean_f1 >= self.mean_f1.max() - 1e-9)
        self.best_score = float(SCORE_THRESHOLDS[highest[len(highest) // 2]])

    @staticmethod
    def _compute_f1(images: np.ndarray, objects: int) -> np.ndarray:
        """F1 of a class in per cent at each of :data:`SCORE_THRESHOLDS`."""
        # F1 = 2 TP / (predictions + objects). The empty list is for a validation without images.
        scores, right = (
            np.concatenate([[], *parts]) for parts in zip(*map(_predictions, images), strict=True)
        )
        counted = scores[None] >= SCORE_THRESHOLDS[:, None]
        return (
            200 * (counted & (right > 0)).sum(axis=1) / np.maximum(counted.sum(axis=1) + objects, 1)
        )

    def image_f1(self) -> dict[int, float]:
        """F1 in per cent of each image with objects or predictions, by its position."""
        f1_scores = {}
        for position, column in zip(self._positions, self._images.T, strict=True):
            scores, right = (
                np.concatenate(parts) for parts in zip(*map(_predictions, column), strict=True)
            )
            counted, objects = scores >= self.best_score, sum(map(_count_objects, column))
            if counted.any() or objects:
                f1_scores[position] = float(200 * right[counted].sum() / (counted.sum() + objects))
        return f1_scores

    def curves(self) -> tuple[DetectionCurve, dict[int, DetectionCurve]]:
        """The mean curve, and the curve of each class with objects, by its number."""
        present = np.flatnonzero(self.objects).tolist()
        by_class = {
            i: DetectionCurve(
                self.recall,
                self.precision[i, 0],
                SCORE_THRESHOLDS,
                self.f1[i],
                float(self.average_precision[i, 1]),
            )
            for i in present
        }
        precision = (
            self.precision[present, 0].mean(axis=0) if len(present) else np.zeros_like(self.recall)
        )
        mean = DetectionCurve(
            self.recall, precision, SCORE_THRESHOLDS, self.mean_f1, float(precision.mean())
        )
        return mean, by_class


def _predictions(entry: dict | None) -> tuple[np.ndarray, np.ndarray]:
    """Scores of the predictions of a class in an image, and which are right at an IoU of 0.5.

    Predictions that match a crowd are left out.

    Args:
        entry: an entry of ``COCOeval.evalImgs``.
    """
    if entry is None:
        return np.empty(0), np.empty(0, bool)
    is_counted = ~np.asarray(entry['dtIgnore'][0], bool)
    is_right = np.asarray(entry['dtMatches'][0], bool)
    return np.asarray(entry['dtScores'])[is_counted], is_right[is_counted]


def _count_objects(entry: dict | None) -> int:
    """The number of objects of a class in an image that are not crowds."""
    return 0 if entry is None else int((np.asarray(entry['gtIgnore']) == 0).sum())


def _as_coco(seen: Mapping[int, ValidatedImage], classes: int, source: str, iou_type: str) -> Any:
    """The objects of a ``source``, ``'true'`` or ``'predicted'``, as pycocotools reads them."""
    from pycocotools.coco import COCO

    coco = COCO()
    coco.dataset = dict(
        info={},
        licenses=[],
        categories=[dict(id=label) for label in range(classes)],
        images=[
            dict(id=position, height=image.frame[0], width=image.frame[1])
            for position, image in seen.items()
        ],
        annotations=[
            dict(annotation, id=number)
            for number, annotation in enumerate(_annotations(seen, source, iou_type), 1)
        ],
    )
    coco.createIndex()
    return coco


def _annotations(
    seen: Mapping[int, ValidatedImage], source: str, iou_type: str
) -> Iterator[dict[str, Any]]:
    """Yield COCO's annotation of each object, without the entry ``id``."""
    from pycocotools.mask import area

    for position, image in seen.items():
        instances: Instances = getattr(image, source)
        for i, (left, top, right, bottom) in enumerate(instances.boxes.tolist()):
            annotation = dict(
                image_id=position,
                category_id=int(instances.labels[i]),
                bbox=[left, top, right - left, bottom - top],
                area=(right - left) * (bottom - top),
                iscrowd=0 if instances.crowd is None else int(instances.crowd[i]),
            )
            if instances.scores is not None:
                annotation['score'] = float(instances.scores[i])
            if iou_type == 'segm' and instances.masks is not None:
                annotation.update(
                    segmentation=instances.masks[i], area=float(area(instances.masks[i]))
                )
            yield annotation
