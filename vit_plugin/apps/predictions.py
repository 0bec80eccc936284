"""What models predict: as text, JSON, CSV and pictures."""

import csv
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vit_plugin.files.complete import replacing

if TYPE_CHECKING:  # a file in ONNX is asked without torch
    from mmengine.structures import BaseDataElement
    from mmengine.visualization import Visualizer

NUM_TOP = 5  # classes that are listed of an image
SCORE_THR = 0.3  # of a box that is listed or drawn
SIDES = ('left', 'top', 'right', 'bottom')


@dataclass(frozen=True)
class Prediction:
    """What a model finds in an image, the surest or largest first."""
    sample: 'BaseDataElement | None'  # the framework's own, if there is one
    names: list[str]  # every class of a classifier; the class of each box; the classes in a segmentor's map
    scores: np.ndarray  # of each name: probability of the class, score of the box, or share of the image
    boxes: np.ndarray | None = None  # (boxes, 4): left, top, right and bottom in pixels of the image
    map: np.ndarray | None = None  # (H, W): the number of the class of each pixel

    @classmethod
    def of(cls, sample: 'BaseDataElement', classes: Sequence[str]) -> 'Prediction':
        """The prediction in a data sample of MMPretrain, MMDetection or MMSegmentation, on the CPU."""
        if 'pred_instances' in sample:
            found = sample.pred_instances
            found = found[found.scores.argsort(descending=True, stable=True)]
            return cls(sample, names_of(found.labels, classes), found.scores.float().numpy(),
                       boxes=found.bboxes.float().numpy())
        if 'pred_sem_seg' in sample:
            labels, counts = sample.pred_sem_seg.data.unique(return_counts=True)
            order = counts.argsort(descending=True, stable=True)
            return cls(sample, names_of(labels[order], classes), (counts[order] / counts.sum()).numpy(),
                       map=sample.pred_sem_seg.data[0].numpy())
        scores, labels = sample.pred_score.float().sort(descending=True, stable=True)
        return cls(sample, names_of(labels, classes), scores.numpy())

    def rows(self, score_thr: float = SCORE_THR) -> list[dict[str, Any]]:
        """Plain values by name: of the five most probable classes, the boxes above a score, or the classes of a map."""
        entries = zip(self.names, self.scores.tolist(), strict=True)
        if self.boxes is not None:
            return [{'class': name, 'score': score, **dict(zip(SIDES, box, strict=True))}
                    for (name, score), box in zip(entries, self.boxes.tolist(), strict=True) if score > score_thr]
        if self.map is not None:
            return [{'class': name, 'share': share} for name, share in entries]
        return [{'class': name, 'score': score} for name, score in islice(entries, NUM_TOP)]

    def text(self, score_thr: float = SCORE_THR) -> str:
        """The rows in a line, boxes counted by class."""
        rows = self.rows(score_thr)
        if self.boxes is not None:
            counts = Counter(row['class'] for row in rows).most_common()
            return ', '.join(f'{count} {name}' for name, count in counts) or 'nothing'
        return ', '.join(f'{row["class"]} {row["share"]:.0%}' if 'share' in row else
                         f'{row["class"]} {row["score"]:.2f}' for row in rows[:NUM_TOP])

    def draw(self, visualizer: 'Visualizer', image: np.ndarray, file: str, score_thr: float = SCORE_THR) -> None:
        """Draw it over an image (H, W, 3) in RGB into a file, by the framework's visualizer."""
        if self.boxes is None and self.map is None:
            assert self.sample is not None  # a file in ONNX has none, and draws by itself
            top = self.sample.clone()
            top.set_pred_label(top.pred_score.topk(min(NUM_TOP, len(top.pred_score))).indices)
            visualizer.visualize_cls(image, top, classes=visualizer.dataset_meta.get('classes'), draw_gt=False,
                                     out_file=file, resize=max(224, min(image.shape[:2])))
        else:
            options = {} if self.boxes is None else dict(pred_score_thr=score_thr)
            visualizer.add_datasample(file, image, self.sample, draw_gt=False, out_file=file, **options)


def names_of(labels: Iterable[int], classes: Sequence[str]) -> list[str]:
    """The names of classes. One without a name is its number; if several have one name, the number follows it."""
    counts = Counter(classes)
    names = [name if counts[name] == 1 else f'{name} ({label})' for label, name in enumerate(classes)]
    return [names[label] if label < len(names) else str(label) for label in map(int, labels)]


def save_predictions(target: str | Path, rows: Mapping[str, Sequence[Mapping[str, Any]]],
                     sources: Sequence[str] = ()) -> None:
    """Write the rows of predictions.

    Args:
        target: a ``.json`` file with a list of rows for each image, or a ``.csv`` file with the image in each row.
        rows: the rows by the path of the image.
        sources: files that were read, none of which is the target.

    Raises:
        ConfigError: see :func:`~vit_plugin.files.complete.replacing`.
    """
    with replacing(target, sources) as path:
        if Path(target).suffix == '.json':
            path.write_text(json.dumps(dict(rows), indent=2))
            return
        columns = dict.fromkeys(key for found in rows.values() for row in found for key in row)
        with open(path, 'w', newline='') as file:
            writer = csv.DictWriter(file, ['image', *(columns or ['class'])])
            writer.writeheader()
            writer.writerows({'image': image, **row} for image, found in rows.items() for row in found)
