"""COCO's AP of a detector that campaigns compute."""

from types import SimpleNamespace

import numpy as np
import pytest
from image_folders import scenes, write_coco

pytest.importorskip('pycocotools')
from benchmarks.coco_ap import average_precision


def test_true_boxes_have_an_ap_of_100_and_none_one_of_0(tmp_path):
    folder = write_coco(tmp_path, count=2)
    truth, images = folder / 'annotations/instances_train2017.json', folder / 'train2017'
    labels = dict(square=0, bar=2)  # in the order of the file
    found = iter([boxes for _, boxes in scenes(2)])

    def perfect(image: np.ndarray) -> SimpleNamespace:
        names, boxes = zip(*next(found), strict=True)
        return SimpleNamespace(
            boxes=np.array(boxes),
            scores=np.ones(len(names)),
            labels=np.array([labels[name] for name in names]),
        )

    def blind(image: np.ndarray) -> SimpleNamespace:
        return SimpleNamespace(boxes=np.zeros((0, 4)), scores=np.zeros(0), labels=np.zeros(0, int))

    assert average_precision(perfect, truth, images) == pytest.approx(100)
    assert average_precision(blind, truth, images) == 0
