"""COCO's metric by faster_coco_eval gives the numbers of pycocotools."""

import json
from functools import partial

import numpy as np
import pytest
from rejection import rejects

import vit_plugin.detection  # noqa: F401  before mmdet

pytest.importorskip('faster_coco_eval')
pytestmark = pytest.mark.filterwarnings('ignore')


def test_metrics_equal_those_of_pycocotools(tmp_path):
    from mmdet.evaluation.metrics import CocoMetric

    from vit_plugin.detection.coco_metric import FasterCocoMetric

    rng = np.random.default_rng(0)
    boxes = {i: rng.integers(5, 60, (4, 4)) for i in range(8)}  # x, y, width, height
    (tmp_path / 'truth.json').write_text(
        json.dumps(
            dict(
                images=[dict(id=i, width=128, height=128, file_name=f'{i}.jpg') for i in boxes],
                annotations=[
                    dict(
                        id=10 * i + j + 1,
                        image_id=i,
                        category_id=j % 2 + 1,
                        bbox=box.tolist(),
                        iscrowd=0,
                        area=int(box[2] * box[3]),
                    )
                    for i, boxes_of_image in boxes.items()
                    for j, box in enumerate(boxes_of_image)
                ],
                categories=[dict(id=1, name='cat'), dict(id=2, name='dog')],
            )
        )
    )
    results = []
    for i, boxes_of_image in boxes.items():
        left_top, sizes = boxes_of_image[:, :2], boxes_of_image[:, 2:]
        corners = np.concatenate([left_top, left_top + sizes], axis=1)
        results.append(
            (
                dict(width=128, height=128, img_id=i),
                dict(
                    img_id=i,
                    bboxes=corners + rng.normal(0, 3, corners.shape),
                    scores=rng.random(4),
                    labels=rng.integers(0, 2, 4),
                ),
            )
        )
    metrics = []
    for metric_class in (CocoMetric, FasterCocoMetric):
        metric = metric_class(ann_file=str(tmp_path / 'truth.json'), classwise=True)
        metric.dataset_meta = dict(classes=('cat', 'dog'))
        metrics.append(metric.compute_metrics(results))
    expected, actual = metrics
    np.testing.assert_equal(actual, expected)  # treats NaN as equal
    assert expected['bbox_mAP'] > 0.1


def test_the_argument_that_mmdetection_renamed_raises():
    from vit_plugin.detection.coco_metric import FasterCocoMetric
    from vit_plugin.detection.tiled_images import TiledCocoDataset

    for build in (FasterCocoMetric, partial(TiledCocoDataset, tile=16)):
        with rejects('file_client_args.*backend_args=...'):
            build(file_client_args=dict(backend='disk'))
