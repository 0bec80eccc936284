import json
import sys

import numpy as np
import pytest
import torch
from mmengine.structures import BaseDataElement, InstanceData

from vit_plugin.errors import MissingExtraError
from vit_plugin.report.outcomes import outcomes_kind
from vit_plugin.tasks.detection.instance_outcomes import InstanceOutcomes

pytest.importorskip('mmdet')
pytest.importorskip('supervision')
pytestmark = pytest.mark.filterwarnings('ignore')  # of MMDetection's import
CLASSES = ('cat', 'dog')


def sample(true, predicted, ignored=(), masks=False, size=(60, 80)):
    """Boxes as (left, top, right, bottom, class[, score]); masks fill the left half of them."""

    def instances(rows, **fields):
        rows = np.asarray(rows, float).reshape(-1, 6 if fields else 5)
        found = InstanceData(
            bboxes=torch.tensor(rows[:, :4]), labels=torch.tensor(rows[:, 4]).long()
        )
        if fields:
            found.scores = torch.tensor(rows[:, 5])
        if masks:
            found.masks = torch.zeros(len(rows), *size, dtype=torch.bool)
            for mask, (left, top, right, bottom) in zip(
                found.masks, rows[:, :4].astype(int), strict=True
            ):
                mask[top:bottom, left : (left + right) // 2] = True
        return found

    return BaseDataElement(
        metainfo=dict(ori_shape=size),
        gt_instances=instances(true),
        ignored_instances=instances(ignored),
        pred_instances=instances(predicted, scores=True),
    )


def outcomes(*samples):
    assert outcomes_kind(samples[0]) is InstanceOutcomes
    found = InstanceOutcomes(CLASSES, len(samples))
    for position, one in enumerate(samples):
        found.add(position, one)
    return found


SCENES = (
    sample(
        [[0, 0, 20, 20, 0], [40, 0, 60, 20, 1]], [[0, 0, 20, 20, 0, 0.9], [41, 0, 60, 20, 0, 0.8]]
    ),
    sample([[10, 10, 30, 30, 1]], [[10, 10, 30, 30, 1, 0.9], [50, 30, 70, 50, 1, 0.3]]),
    sample([], []),
)


def test_the_confusion_matrix_has_a_background():
    found = outcomes(*SCENES)
    assert found.scores()['best'] == dict(
        score=pytest.approx(0.85, abs=0.06), f1=pytest.approx(100 * (1 + 2 / 3) / 2)
    )
    score = found.scores()['best']['score']
    predicted_as_cat = int(score <= 0.8)
    assert found.confusion_matrix().tolist() == [
        [1, 0, 0],
        [predicted_as_cat, 1, 1 - predicted_as_cat],
        [0, 0, 0],
    ]
    assert [name for name, _ in found.figures()] == ['precision_recall', 'confusion_matrix']


def test_images_are_ranked_by_f1():
    found = outcomes(*SCENES)
    # Nothing is there in the third, nothing was found.
    assert found.errors() == pytest.approx({0: 100 / 3, 1: 0})
    assert found.pages()['val_worst'][1] == [0]
    true, predicted = found.panels(0, np.zeros((60, 80, 3), np.uint8))
    score = found.scores()['best']['score']
    assert (true.title, predicted.title) == ('2 true', f'1 predicted above {score:.2f}, F1 66.7 %')
    assert predicted.annotations.frame == (60, 80)


def test_images_without_an_error_are_not_among_the_worst():
    found = outcomes(*SCENES)
    found.errors = lambda: {0: 0.0, 1: 10.0, 2: 0.0, 3: 0.0}
    assert found.pages()['val_worst'][1] == [1]
    found.errors = lambda: {0: 0.0, 1: 0.0}
    assert found.pages()['val_worst'][1] == []


@pytest.mark.parametrize('masks', [False, True])
def test_average_precision_is_that_of_mmdetection(tmp_path, masks):
    from mmdet.evaluation import CocoMetric

    draw = np.random.default_rng(0)
    samples, images, annotations = [], [], []
    for number in range(12):
        corners = draw.integers(0, 30, (5, 2))
        boxes = np.hstack(
            (corners, corners + draw.integers(6, 30, (5, 2)), draw.integers(0, 2, (5, 1)))
        )
        found = np.hstack(
            (boxes + draw.integers(-2, 3, (5, 5)) * [1, 1, 1, 1, 0], draw.random((5, 1)).round(3))
        )
        samples.append(sample(boxes[:4], found.clip(0), boxes[4:], masks))
        images.append(dict(id=number, width=80, height=60, file_name=''))
        for i, (left, top, right, bottom, label) in enumerate(boxes.tolist()):
            half = (left + right) // 2
            annotations.append(
                dict(
                    id=len(annotations) + 1,
                    image_id=number,
                    category_id=label,
                    iscrowd=int(i == 4),
                    bbox=[left, top, right - left, bottom - top],
                    area=(half - left if masks else right - left) * (bottom - top),
                    segmentation=[[left, top, half, top, half, bottom, left, bottom]]
                    if i < 4
                    else rle(left, top, half, bottom),
                )
            )
    (tmp_path / 'all.json').write_text(
        json.dumps(
            dict(
                info={},
                images=images,
                annotations=annotations,
                categories=[dict(id=label, name=name) for label, name in enumerate(CLASSES)],
            )
        )
    )
    metric = CocoMetric(
        str(tmp_path / 'all.json'), ['bbox', 'segm'] if masks else 'bbox', classwise=True
    )
    metric.dataset_meta = dict(classes=CLASSES)
    metric.process(
        {},
        [
            dict(one.metainfo, img_id=i, pred_instances=dict(one.pred_instances.items()))
            for i, one in enumerate(samples)
        ],
    )
    expected, found = metric.evaluate(len(samples)), outcomes(*samples).scores()
    names = dict(AP='bbox_mAP', AP50='bbox_mAP_50', AP75='bbox_mAP_75')
    if masks:
        names |= dict(mask_AP='segm_mAP', mask_AP50='segm_mAP_50', mask_AP75='segm_mAP_75')
    assert 5 < found['macro']['AP'] < 95
    assert found['macro'] == pytest.approx(
        {name: 100 * expected[f'coco/{one}'] for name, one in names.items()}, abs=0.051
    )  # MMDetection's have three digits
    by_class = [row['mask_AP' if masks else 'AP'] for row in found['per_class']]
    assert by_class == pytest.approx(
        [100 * expected[f'coco/{name}_precision'] for name in CLASSES], abs=0.051
    )
    assert sum(row['objects'] for row in found['per_class']) == 48


def rle(left, top, right, bottom):
    from pycocotools.mask import encode

    mask = np.zeros((60, 80), np.uint8, order='F')
    mask[top:bottom, left:right] = 1
    found = encode(mask)
    return dict(found, counts=found['counts'].decode())


def test_masks_decide_where_there_are_masks():
    (one,) = [sample([[0, 0, 20, 20, 0]], [[0, 0, 20, 20, 0, 0.9]], masks=True)]
    one.pred_instances.masks[:] = False
    one.pred_instances.masks[0, 0:20, 14:20] = True  # beside the true one, in the same box
    found = outcomes(one)
    assert found.scores()['per_class'][0] == dict(
        name='cat', AP=100, AP50=100, AP75=100, mask_AP=0, mask_AP50=0, mask_AP75=0, objects=1
    )
    assert found.confusion_matrix()[0, 0] == 0


def test_nothing_was_found():
    found = outcomes(sample([[0, 0, 20, 20, 0]], []), sample([], []))
    assert found.scores()['per_class'] == [
        dict(name='cat', AP=0, AP50=0, AP75=0, objects=1),
        dict(name='dog', AP=None, AP50=None, AP75=None, objects=0),
    ]
    assert found.confusion_matrix().tolist() == [[0, 0, 1], [0, 0, 0], [0, 0, 0]]
    assert found.errors() == {0: 100}
    assert len(list(found.figures())) == 2


def test_without_supervision_there_are_scores_and_curves(monkeypatch):
    monkeypatch.setitem(sys.modules, 'supervision', None)
    found = outcomes(*SCENES)
    assert found.scores()['macro']['AP50'] > 0
    figures = found.figures()
    assert next(figures)[0] == 'precision_recall'
    with pytest.raises(MissingExtraError, match=r"needs supervision, .* '.\[det\]' or"):
        next(figures)
