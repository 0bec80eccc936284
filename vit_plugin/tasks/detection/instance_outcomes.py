"""Outcomes of a detector's validation: scores, curves, confusion matrix, best and worst images."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from vit_plugin.errors import needed_by
from vit_plugin.report.outcomes import Outcomes
from vit_plugin.report.pictures import draw_confusion_matrix
from vit_plugin.report.pictures.annotations import (
    Annotations,
    Instances,
    read_instances,
    true_instances,
)
from vit_plugin.report.pictures.charts import draw_detection_curves
from vit_plugin.report.pictures.image_grid import Panel

from .average_precision import AveragePrecisionByClass, ValidatedImage

IOU = 0.5  # threshold for a match in the confusion matrix, as in the F1 of average_precision
BACKGROUND = 'background'


class InstanceOutcomes(Outcomes):
    """Boxes of objects, and masks if the model predicts them.

    COCO's evaluation decides which objects are found. In the confusion matrix and the pictures,
    predictions count from the score with the highest F1. The error of an image is 100 - F1 at this
    score.
    """

    # Overrides attributes of Outcomes, which describes them.
    expensive = True
    error_name = 'F1 of the image'
    panels_per_image = 2  # ground truth and prediction

    _seen: dict[int, ValidatedImage]

    @classmethod
    def matches(cls, sample: Any) -> bool:
        pair = true_instances(sample), read_instances(sample, 'pred_instances')
        return all(instances is not None for instances in pair)

    def add(self, position: int, sample: Any) -> None:
        true, predicted = true_instances(sample), read_instances(sample, 'pred_instances')
        assert true is not None
        assert predicted is not None
        self._seen[position] = ValidatedImage(tuple(sample.ori_shape[:2]), true, predicted)

    @property
    def _iou_types(self) -> list[str]:
        """What pycocotools compares: boxes, and masks if all images have them."""
        masks = all(
            instances.masks is not None
            for seen in self._seen.values()
            for instances in (seen.true, seen.predicted)
        )
        return ['bbox', 'segm'] if masks else ['bbox']

    @cached_property
    def _evaluations(self) -> dict[str, AveragePrecisionByClass]:
        return {
            iou_type: AveragePrecisionByClass(self._seen, len(self.classes), iou_type)
            for iou_type in self._iou_types
        }

    @property
    def _main(self) -> AveragePrecisionByClass:
        """The evaluation of masks if there are any, else of boxes."""
        return self._evaluations[self._iou_types[-1]]

    def scores(self) -> dict[str, Any]:
        rows: list[dict[str, Any]] = [dict(name=str(name)) for name in self.classes]
        for iou_type, evaluation in self._evaluations.items():
            prefix = 'mask_' if iou_type == 'segm' else ''
            for row, values in zip(rows, evaluation.average_precision, strict=True):
                row.update(
                    (f'{prefix}{name}', None if np.isnan(value) else round(float(value), 4))
                    for name, value in zip(('AP', 'AP50', 'AP75'), values, strict=True)
                )
        metrics = [name for name in rows[0] if name != 'name']  # without the counts that follow
        for row, count in zip(rows, self._main.objects, strict=True):
            row['objects'] = int(count)
        macro = {}
        for name in metrics:
            values = [row[name] for row in rows if row[name] is not None]
            macro[name] = round(float(np.mean(values)), 4) if values else None
        best = dict(
            score=round(self._main.best_score, 4), f1=round(float(self._main.mean_f1.max()), 4)
        )
        return dict(macro=macro, best=best, per_class=rows)

    def confusion_matrix(self) -> np.ndarray:
        with needed_by('The confusion matrix of a detector'):
            import supervision as sv
        masks = self._iou_types[-1] == 'segm'
        target = sv.metrics.MetricTarget.MASKS if masks else sv.metrics.MetricTarget.BOXES
        score = self._main.best_score
        true = [_detections(seen.true.objects, masks) for seen in self._seen.values()]
        predicted = [
            _detections(seen.predicted.above(score), masks) for seen in self._seen.values()
        ]
        confusion = sv.ConfusionMatrix.from_detections(
            predicted,
            true,
            list(self.classes),
            conf_threshold=score,
            iou_threshold=IOU,
            metric_target=target,
        )
        return confusion.matrix.astype(int)

    def figures(self) -> Iterator[tuple[str, Figure]]:
        main = self._main
        shapes = 'masks' if self._iou_types[-1] == 'segm' else 'boxes'
        note = f'{shapes} of IoU {IOU}, scores from {main.best_score:.2f}'
        yield (
            'precision_recall',
            draw_detection_curves(*main.curves(), self.classes, main.best_score),
        )
        matrix = self.confusion_matrix()
        yield (
            'confusion_matrix',
            draw_confusion_matrix(
                matrix, self.classes, unit='objects', background=BACKGROUND, note=note
            ),
        )

    def errors(self) -> dict[int, float]:
        return {position: 100 - f1 for position, f1 in self._main.image_f1().items()}

    def panels(self, position: int, image: np.ndarray) -> list[Panel]:
        seen, f1 = self._seen[position], self._main.image_f1().get(position)
        score = self._main.best_score
        predicted = seen.predicted.above(score)
        title = f'{len(predicted)} predicted above {score:.2f}'
        title += '' if f1 is None else f', F1 {f1:.1f} %'
        return [
            Panel(
                image,
                Annotations(seen.frame, instances=seen.true),
                f'{len(seen.true.objects)} true',
            ),
            Panel(image, Annotations(seen.frame, instances=predicted), title),
        ]


def _detections(instances: Instances, masks: bool) -> Any:
    """Instances as supervision's detections, with compressed masks: dense ones need much memory."""
    import supervision as sv

    detections = sv.Detections(
        instances.boxes, class_id=instances.labels.astype(int), confidence=instances.scores
    )
    if masks and instances.masks:
        from pycocotools.mask import toBbox

        boxes = toBbox(list(instances.masks))
        boxes[:, 2:] += boxes[:, :2]  # width and height become right and bottom
        detections.mask = sv.CompactMask.from_coco_rle(
            instances.masks, boxes, tuple(instances.masks[0]['size'])
        )
    return detections
