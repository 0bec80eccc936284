"""COCO's AP, so that detectors of any runtime are scored by the same code."""

import contextlib
import io
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from vit_plugin.inference.predictions import Prediction


def average_precision(
    predict: Callable[[np.ndarray], Prediction], truth: Path, images: Path
) -> float:
    """AP at IoU 0.50:0.95 in percent of a detector on the images of a file of COCO annotations.

    Args:
        predict: the pixels (H, W, 3) of an image in BGR -> the prediction, whose labels count the
            categories from 0.
        truth: the annotations.
        images: the folder of the image files.
    """
    with contextlib.redirect_stdout(io.StringIO()):  # COCO's code prints
        coco = COCO(truth)
        detections = []
        for number, image in coco.imgs.items():
            prediction = predict(cv2.imread(str(images / image['file_name'])))
            assert prediction.boxes is not None
            for (left, top, right, bottom), score, label in zip(
                prediction.boxes.tolist(),
                prediction.scores.tolist(),
                prediction.labels.tolist(),
                strict=True,
            ):
                detections.append(
                    dict(
                        image_id=number,
                        category_id=coco.getCatIds()[label],
                        bbox=[left, top, right - left, bottom - top],
                        score=score,
                    )
                )
        if not detections:  # COCO's code fails without boxes
            return 0.0
        evaluation = COCOeval(coco, coco.loadRes(detections), 'bbox')
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return float(100 * evaluation.stats[0])  # AP at IoU 0.50:0.95
