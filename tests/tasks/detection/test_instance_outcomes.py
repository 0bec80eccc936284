"""Outcomes of detectors: scores, confusion matrix, ranking and pictures."""

import json
import sys

import numpy as np
import pytest
import torch
from mmengine.structures import BaseDataElement, InstanceData

from vit_plugin.errors import MissingExtraError
from vit_plugin.report.outcomes import outcomes_class
from vit_plugin.tasks.detection.instance_outcomes import InstanceOutcomes

pytest.importorskip('mmdet')
pytest.importorskip('supervision')
pytestmark = pytest.mark.filterwarnings('ignore')  # warnings of MMDetection's import
CLASSES = ('cat', 'dog')


def sample(true, predicted, ignored=(), masks=False, size=(60, 80)):
    """A sample from rows (left, top, right, bottom, class), with a score last in predicted rows.

    With ``masks``, a mask fills the left half of each box.
    """

    def instances(rows, has_scores=False):
        rows = np.asarray(rows, float).reshape(-1, 6 if has_scores else 5)
        objects = InstanceData(
            bboxes=torch.tensor(rows[:, :4]), labels=torch.tensor(rows[:, 4]).long()
        )
        if has_scores:
            objects.scores = torch.tensor(rows[:, 5])
        if masks:
            objects.masks = torch.zeros(len(rows), *size, dtype=torch.bool)
            for mask, (left, top, right, bottom) in zip(
                objects.masks, rows[:, :4].astype(int), strict=True
            ):
                mask[top:bottom, left : (left + right) // 2] = True
        return objects

    return BaseDataElement(
        metainfo=dict(ori_shape=size),
        gt_instances=instances(true),
        ignored_instances=instances(ignored),
        pred_instances=instances(predicted, has_scores=True),
    )


def outcomes_of(*samples):
    assert outcomes_class(samples[0]) is InstanceOutcomes
    outcomes = InstanceOutcomes(CLASSES, len(samples))
    for position, data_sample in enumerate(samples):
        outcomes.add(position, data_sample)
    return outcomes


# Three images: a detected cat, and a dog that is taken for a cat; a detected dog, and a second one
# that does not exist; an empty image.
SCENES = (
    sample(
        [[0, 0, 20, 20, 0], [40, 0, 60, 20, 1]], [[0, 0, 20, 20, 0, 0.9], [41, 0, 60, 20, 0, 0.8]]
    ),
    sample([[10, 10, 30, 30, 1]], [[10, 10, 30, 30, 1, 0.9], [50, 30, 70, 50, 1, 0.3]]),
    sample([], []),
)


def test_confusion_matrix_has_a_background():
    outcomes = outcomes_of(*SCENES)
    assert outcomes.scores()['best'] == dict(
        score=pytest.approx(0.85, abs=0.06), f1=pytest.approx(100 * (1 + 2 / 3) / 2)
    )
    score = outcomes.scores()['best']['score']
    predicted_as_cat = int(score <= 0.8)  # the wrong cat has a score of 0.8
    assert outcomes.confusion_matrix().tolist() == [
        [1, 0, 0],
        [predicted_as_cat, 1, 1 - predicted_as_cat],
        [0, 0, 0],
    ]
    assert [name for name, _ in outcomes.figures()] == ['precision_recall', 'confusion_matrix']


def test_images_are_ranked_by_f1():
    outcomes = outcomes_of(*SCENES)
    # The third image has no error: it has no object and no prediction.
    assert outcomes.errors() == pytest.approx({0: 100 / 3, 1: 0})
    assert outcomes.pages()['val_worst'][1] == [0]
    true, predicted = outcomes.panels(0, np.zeros((60, 80, 3), np.uint8))
    score = outcomes.scores()['best']['score']
    assert (true.title, predicted.title) == ('2 true', f'1 predicted above {score:.2f}, F1 66.7 %')
    assert predicted.annotations.frame == (60, 80)


def test_images_without_an_error_are_not_among_the_worst():
    outcomes = outcomes_of(*SCENES)
    outcomes.errors = lambda: {0: 0.0, 1: 10.0, 2: 0.0, 3: 0.0}
    assert outcomes.pages()['val_worst'][1] == [1]
    outcomes.errors = lambda: {0: 0.0, 1: 0.0}
    assert outcomes.pages()['val_worst'][1] == []


@pytest.mark.parametrize('masks', [False, True])
def test_average_precision_equals_that_of_mmdetection(tmp_path, masks):
    from mmdet.evaluation import CocoMetric

    rng = np.random.default_rng(0)
    samples, images, annotations = [], [], []
    for number in range(12):
        corners = rng.integers(0, 30, (5, 2))
        boxes = np.hstack(
            (corners, corners + rng.integers(6, 30, (5, 2)), rng.integers(0, 2, (5, 1)))
        )
        predicted = np.hstack(
            (boxes + rng.integers(-2, 3, (5, 5)) * [1, 1, 1, 1, 0], rng.random((5, 1)).round(3))
        )
        # The last box of an image is a crowd, which is ignored.
        samples.append(sample(boxes[:4], predicted.clip(0), boxes[4:], masks))
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
            dict(
                data_sample.metainfo,
                img_id=i,
                pred_instances=dict(data_sample.pred_instances.items()),
            )
            for i, data_sample in enumerate(samples)
        ],
    )
    expected, scores = metric.evaluate(len(samples)), outcomes_of(*samples).scores()
    names = dict(AP='bbox_mAP', AP50='bbox_mAP_50', AP75='bbox_mAP_75')
    if masks:
        names |= dict(mask_AP='segm_mAP', mask_AP50='segm_mAP_50', mask_AP75='segm_mAP_75')
    assert 5 < scores['macro']['AP'] < 95
    assert scores['macro'] == pytest.approx(
        {name: 100 * expected[f'coco/{metric_name}'] for name, metric_name in names.items()},
        abs=0.051,  # MMDetection rounds to three digits
    )
    by_class = [row['mask_AP' if masks else 'AP'] for row in scores['per_class']]
    assert by_class == pytest.approx(
        [100 * expected[f'coco/{name}_precision'] for name in CLASSES], abs=0.051
    )
    assert sum(row['objects'] for row in scores['per_class']) == 48


def rle(left, top, right, bottom):
    """A mask of a rectangle in the encoding of COCO."""
    from pycocotools.mask import encode

    mask = np.zeros((60, 80), np.uint8, order='F')
    mask[top:bottom, left:right] = 1
    encoded = encode(mask)
    return dict(encoded, counts=encoded['counts'].decode())


def test_masks_decide_matches_if_there_are_masks():
    data_sample = sample([[0, 0, 20, 20, 0]], [[0, 0, 20, 20, 0, 0.9]], masks=True)
    data_sample.pred_instances.masks[:] = False
    data_sample.pred_instances.masks[0, 0:20, 14:20] = True  # in the same box, without overlap
    outcomes = outcomes_of(data_sample)
    assert outcomes.scores()['per_class'][0] == dict(
        name='cat', AP=100, AP50=100, AP75=100, mask_AP=0, mask_AP50=0, mask_AP75=0, objects=1
    )
    assert outcomes.confusion_matrix()[0, 0] == 0


def test_images_without_predictions_have_zero_scores():
    outcomes = outcomes_of(sample([[0, 0, 20, 20, 0]], []), sample([], []))
    assert outcomes.scores()['per_class'] == [
        dict(name='cat', AP=0, AP50=0, AP75=0, objects=1),
        dict(name='dog', AP=None, AP50=None, AP75=None, objects=0),
    ]
    assert outcomes.confusion_matrix().tolist() == [[0, 0, 1], [0, 0, 0], [0, 0, 0]]
    assert outcomes.errors() == {0: 100}
    assert len(list(outcomes.figures())) == 2


def test_scores_and_curves_need_no_supervision(monkeypatch):
    monkeypatch.setitem(sys.modules, 'supervision', None)
    outcomes = outcomes_of(*SCENES)
    assert outcomes.scores()['macro']['AP50'] > 0
    figures = outcomes.figures()
    assert next(figures)[0] == 'precision_recall'
    with pytest.raises(MissingExtraError, match=r"needs supervision, .* '.\[det\]' or"):
        next(figures)
