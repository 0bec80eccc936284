"""What a detector finds, with boxes or masks."""

import contextlib
import io
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from vit_plugin.errors import needed_by
from vit_plugin.visualization import draw_confusion_matrix
from vit_plugin.visualization.charts import ALL, DetectionCurve, draw_detection_curves
from vit_plugin.visualization.marks import Instances, Marks, predicted_marks, true_marks
from vit_plugin.visualization.sheets import Panel

from .outcomes import Outcomes

MOST = 100  # predictions of an image and a class that count, as in COCO's AP
STEPS = np.linspace(0, 1, 201)  # scores from which a prediction may count
IOU = 0.5  # from which an object is found, in curves, confusion matrix and errors of images
BACKGROUND = 'background'


class Seen(NamedTuple):
    """An image: its height and width, and what is true and predicted."""
    frame: tuple[int, int]
    true: Instances
    predicted: Instances


class InstanceOutcomes(Outcomes):
    """Boxes of objects, and masks if the model predicts them.

    COCO's evaluation decides what is found. From which score a prediction counts in the confusion matrix and the
    pictures is where F1 is highest. The error of an image is 100 - F1 there.
    """

    dear, error, per_image = True, 'F1 of the image', 2

    def __init__(self, classes: Sequence[str], size: int) -> None:
        super().__init__(classes, size)
        self._seen: dict[int, Seen] = {}

    @classmethod
    def has(cls, sample: Any) -> bool:
        marks = [find(sample, (1, 1), ()).instances for find in (true_marks, predicted_marks)]
        return all(one is not None for one in marks)

    def add(self, position: int, sample: Any) -> None:
        frame = tuple(sample.ori_shape[:2])
        true, predicted = (find(sample, frame, ()).instances for find in (true_marks, predicted_marks))
        assert true is not None
        assert predicted is not None
        self._seen[position] = Seen(frame, true, predicted)

    def join(self, other: Outcomes) -> None:
        assert isinstance(other, InstanceOutcomes)
        self._seen |= other._seen

    @property
    def _kinds(self) -> list[str]:
        """What can be compared, in pycocotools' words."""
        masks = all(one.masks is not None for seen in self._seen.values() for one in (seen.true, seen.predicted))
        return ['bbox', 'segm'] if masks else ['bbox']

    @cached_property
    def _found(self) -> dict[str, 'Found']:
        return {kind: Found(self._seen, len(self.classes), kind) for kind in self._kinds}

    @property
    def _main(self) -> 'Found':
        """By masks if there are any, else by boxes."""
        return self._found[self._kinds[-1]]

    def scores(self) -> dict[str, Any]:
        rows: list[dict[str, Any]] = [dict(name=str(name)) for name in self.classes]
        for kind, found in self._found.items():
            prefix = 'mask_' * (kind == 'segm')
            for row, values in zip(rows, found.average_precision, strict=True):
                row.update((f'{prefix}{name}', None if np.isnan(value) else round(float(value), 4))
                           for name, value in zip(('AP', 'AP50', 'AP75'), values, strict=True))
        for row, number in zip(rows, self._main.objects, strict=True):
            row['objects'] = int(number)
        macro = {}
        for name in (name for name in rows[0] if name not in ('name', 'objects')):
            values = [row[name] for row in rows if row[name] is not None]
            macro[name] = round(float(np.mean(values)), 4) if values else None
        best = dict(score=round(self._main.best_score, 4), f1=round(float(self._main.mean_f1.max()), 4))
        return dict(macro=macro, best=best, per_class=rows)

    def confusion_matrix(self) -> np.ndarray:
        with needed_by('The confusion matrix of a detector'):
            import supervision as sv
        masks = self._kinds[-1] == 'segm'
        target = sv.metrics.MetricTarget.MASKS if masks else sv.metrics.MetricTarget.BOXES
        score = self._main.best_score
        true = [_detections(one.true.objects, masks) for one in self._seen.values()]
        predicted = [_detections(one.predicted.above(score), masks) for one in self._seen.values()]
        counted = sv.ConfusionMatrix.from_detections(
            predicted, true, list(self.classes), conf_threshold=score, iou_threshold=IOU, metric_target=target)
        return counted.matrix.astype(int)

    def figures(self) -> Iterator[tuple[str, Figure]]:
        main = self._main
        note = f'{"masks" if self._kinds[-1] == "segm" else "boxes"} of IoU {IOU}, scores from {main.best_score:.2f}'
        yield 'precision_recall', draw_detection_curves(main.curves(self.classes), main.best_score)
        matrix = self.confusion_matrix()
        yield 'confusion_matrix', draw_confusion_matrix(matrix, self.classes, 'objects', BACKGROUND, note)

    def errors(self) -> dict[int, float]:
        return {position: 100 - f1 for position, f1 in self._main.image_f1().items()}

    def panels(self, position: int, image: np.ndarray) -> list[Panel]:
        one, f1 = self._seen[position], self._main.image_f1().get(position)
        predicted = one.predicted.above(self._main.best_score)
        title = f'{len(predicted)} predicted' + ('' if f1 is None else f', F1 {f1:.1f} %')
        return [Panel(image, Marks(one.frame, instances=one.true), f'{len(one.true.objects)} true'),
                Panel(image, Marks(one.frame, instances=predicted), title)]


class Found:
    """What pycocotools' evaluation says of some images.

    Args:
        seen: the images by their position.
        classes: number of classes.
        kind: ``'bbox'`` or ``'segm'``.

    Attributes:
        average_precision: AP, AP50 and AP75 of each class in per cent, NaN without objects, of shape (classes, 3).
        objects: number of objects of each class that are no crowd, of shape (classes,).
        best_score: the score with the highest F1, as the mean of the classes.
    """

    def __init__(self, seen: Mapping[int, Seen], classes: int, kind: str) -> None:
        from pycocotools.cocoeval import COCOeval
        with contextlib.redirect_stdout(io.StringIO()):
            true, predicted = (_as_coco(seen, classes, name, kind) for name in ('true', 'predicted'))
            evaluation = COCOeval(true, predicted, kind)
            params = evaluation.params
            params.maxDets, params.areaRng, params.areaRngLbl = [MOST], [[0, 1e10]], ['all']
            evaluation.evaluate()
            evaluation.accumulate()
        precision = evaluation.eval['precision'][..., 0, 0].transpose(2, 0, 1)  # (classes, IoUs, recalls)
        self.precision = np.where(precision < 0, np.nan, 100 * precision)
        self.recall = 100 * params.recThrs
        self.average_precision = np.stack(
            (self.precision.mean(axis=(1, 2)), *self.precision[:, (0, 5)].mean(axis=2).T), axis=1)
        self._images = np.array(evaluation.evalImgs, dtype=object).reshape(classes, len(seen))
        self._positions = params.imgIds
        self.objects = np.array([sum(_objects(one) for one in row) for row in self._images])
        self.f1 = np.stack([self._f1_of(row, number) for row, number in zip(self._images, self.objects, strict=True)])
        present = self.objects > 0
        self.mean_f1 = self.f1[present].mean(axis=0) if present.any() else np.zeros(len(STEPS))
        highest = np.flatnonzero(self.mean_f1 >= self.mean_f1.max() - 1e-9)
        self.best_score = float(STEPS[highest[len(highest) // 2]])

    @staticmethod
    def _f1_of(images: np.ndarray, objects: int) -> np.ndarray:
        """F1 in per cent at each of :data:`STEPS`."""
        scores, right = (np.concatenate([[], *parts]) for parts in zip(*map(_predictions, images), strict=True))
        counted = scores[None] >= STEPS[:, None]
        return 200 * (counted & (right > 0)).sum(axis=1) / np.maximum(counted.sum(axis=1) + objects, 1)

    def image_f1(self) -> dict[int, float]:
        """F1 in per cent of each image with objects or predictions, by its position."""
        found = {}
        for position, column in zip(self._positions, self._images.T, strict=True):
            scores, right = (np.concatenate(parts) for parts in zip(*map(_predictions, column), strict=True))
            counted, objects = scores >= self.best_score, sum(map(_objects, column))
            if counted.any() or objects:
                found[position] = float(200 * right[counted].sum() / (counted.sum() + objects))
        return found

    def curves(self, classes: Sequence[str]) -> dict[str, DetectionCurve]:
        """The curve of all, then that of each class with objects."""
        present = np.flatnonzero(self.objects).tolist()
        curves = {str(classes[i]): DetectionCurve(
            self.recall, self.precision[i, 0], STEPS, self.f1[i], float(self.average_precision[i, 1])) for i in present}
        mean = self.precision[present, 0].mean(axis=0) if len(present) else np.zeros_like(self.recall)
        return {ALL: DetectionCurve(self.recall, mean, STEPS, self.mean_f1, float(mean.mean())), **curves}


def _predictions(image: dict | None) -> tuple[np.ndarray, np.ndarray]:
    """Scores of the predictions of a class in an image, and which are right, without those of crowds."""
    if image is None:
        return np.empty(0), np.empty(0, bool)
    counts = ~np.asarray(image['dtIgnore'][0], bool)
    return np.asarray(image['dtScores'])[counts], np.asarray(image['dtMatches'][0], bool)[counts]


def _objects(image: dict | None) -> int:
    return 0 if image is None else int((np.asarray(image['gtIgnore']) == 0).sum())


def _as_coco(seen: Mapping[int, Seen], classes: int, side: str, kind: str) -> Any:
    """What is true, or predicted, as pycocotools reads it."""
    from pycocotools.coco import COCO
    coco = COCO()
    coco.dataset = dict(
        info={}, licenses=[], categories=[dict(id=label) for label in range(classes)],
        images=[dict(id=position, height=one.frame[0], width=one.frame[1]) for position, one in seen.items()],
        annotations=[dict(annotation, id=number) for number, annotation in enumerate(
            _annotations(seen, side, kind), 1)])
    coco.createIndex()
    return coco


def _annotations(seen: Mapping[int, Seen], side: str, kind: str) -> Iterator[dict[str, Any]]:
    from pycocotools.mask import area
    for position, one in seen.items():
        instances: Instances = getattr(one, side)
        for i, (left, top, right, bottom) in enumerate(instances.boxes.tolist()):
            annotation = dict(
                image_id=position, category_id=int(instances.labels[i]), bbox=[left, top, right - left, bottom - top],
                area=(right - left) * (bottom - top), iscrowd=0 if instances.crowd is None else int(instances.crowd[i]))
            if instances.scores is not None:
                annotation['score'] = float(instances.scores[i])
            if kind == 'segm' and instances.masks is not None:
                annotation.update(segmentation=instances.masks[i], area=float(area(instances.masks[i])))
            yield annotation


def _detections(instances: Instances, masks: bool) -> Any:
    """Instances as supervision has them. Masks stay compressed, as those of all images would need much memory."""
    import supervision as sv
    found = sv.Detections(instances.boxes, class_id=instances.labels.astype(int), confidence=instances.scores)
    if masks and instances.masks:
        from pycocotools.mask import toBbox
        places = toBbox(list(instances.masks))
        places[:, 2:] += places[:, :2]
        found.mask = sv.CompactMask.from_coco_rle(instances.masks, places, tuple(instances.masks[0]['size']))
    return found
