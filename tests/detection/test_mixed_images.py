"""Mixed images: where objects land, what their pixels are, and what is not read."""

from rejection import rejects

import vit_plugin.detection  # noqa: F401  isort: skip  before mmdet

import numpy as np
import pytest
import torch
from mmdet.structures.bbox import HorizontalBoxes
from mmengine.registry import init_default_scope

from vit_plugin.detection.mixed_images import CopyBlend, RandomMix

BLEND = [dict(type='vit_plugin.CopyBlend')]


def sample(value, boxes, ignored=(), size=(40, 60)):
    """An image of one value, with boxes of another, all of class 1."""
    image = np.full((*size, 3), value, np.uint8)
    for left, top, right, bottom in boxes:
        image[top:bottom, left:right] = 200
    number = len(boxes)
    return dict(
        img=image,
        img_shape=size,
        gt_bboxes=HorizontalBoxes(torch.tensor(boxes, dtype=torch.float32).view(-1, 4)),
        gt_bboxes_labels=np.full(number, 1),
        gt_ignore_flags=np.array([i in ignored for i in range(number)], bool),
    )


def blended(target, source, seed=0, **options):
    np.random.seed(seed)
    return CopyBlend(**options).transform(dict(target, mix_results=[source]))


def test_an_object_is_the_mean_of_both_images_inside_its_box():
    source = sample(0, [(10, 10, 30, 25)])
    for seed in range(20):
        found = blended(sample(100, []), source, seed, margins=(0.0, 0.0), weights=(0.5, 0.5))
        ((left, top, right, bottom),) = found['gt_bboxes'].tensor.int().tolist()
        assert (right - left, bottom - top) == (20, 15)
        inside = np.zeros((40, 60), bool)
        inside[top:bottom, left:right] = True
        assert (found['img'][inside] == 150).all()
        assert (found['img'][~inside] == 100).all()
        assert found['gt_bboxes_labels'].tolist() == [1]


def test_a_margin_is_around_the_object_and_not_in_its_box():
    source = sample(0, [(20, 10, 40, 30)])
    options = dict(margins=(0.25, 0.25), weights=(0.5, 0.5))
    margins = set()
    for seed in range(20):
        found = blended(sample(100, []), source, seed, **options)
        ((left, top, right, bottom),) = found['gt_bboxes'].tensor.int().tolist()
        rows, columns = (found['img'][..., 0] == 50).nonzero()  # background, blended
        assert (found['img'][top:bottom, left:right] == 150).all()
        if len(rows):
            assert rows.min() >= top - 5
            assert columns.max() < right + 5
            margins.add(left - columns.min())
    assert margins == {*range(6)} & margins
    assert 5 in margins


def test_objects_of_an_image_of_another_size_fit_into_this_one():
    source = sample(0, [(0, 0, 120, 80)], size=(80, 120))
    found = blended(sample(100, []), source)
    assert found['gt_bboxes'].tensor.tolist() == [[0, 0, 60, 40]]


def test_what_was_there_stays_and_the_images_themselves_are_not_changed():
    target, source = sample(100, [(0, 0, 10, 10)]), sample(0, [(10, 10, 30, 25)])
    before = target['img'].copy()
    found = blended(target, source)
    assert found['gt_bboxes'].tensor[0].tolist() == [0, 0, 10, 10]
    assert len(found['gt_bboxes']) == len(found['gt_ignore_flags']) == 2
    assert np.array_equal(target['img'], before)
    assert not np.array_equal(found['img'], before)


@pytest.mark.parametrize(
    ('boxes', 'ignored'), [([], ()), ([(0, 0, 9, 9)], ()), ([(0, 0, 20, 20)], (0,))]
)
def test_no_small_or_ignored_object_is_copied(boxes, ignored):
    target = sample(100, [])
    found = blended(target, sample(0, boxes, ignored))
    assert len(found['gt_bboxes']) == 0
    assert np.array_equal(found['img'], target['img'])


def test_at_most_so_many_objects_are_copied():
    boxes = [(12 * i, 0, 12 * i + 11, 11) for i in range(5)]
    assert len(blended(sample(0, []), sample(0, boxes))['gt_bboxes']) == 3
    assert len(blended(sample(0, []), sample(0, boxes), num_objects=9)['gt_bboxes']) == 5


def test_other_images_are_drawn_for_a_share_of_the_samples():
    init_default_scope('mmdet')
    np.random.seed(0)
    mix = RandomMix(BLEND, prob=0.25)
    drawn = [mix.get_indexes(range(7)) for _ in range(400)]
    assert 70 < sum(map(bool, drawn)) < 130
    assert {index for one in drawn for index in one} == {*range(7)}
    target = sample(100, [])
    assert mix(dict(target, mix_results=[]))['img'] is target['img']


def test_what_cannot_be_mixed_is_refused():
    with rejects('RandomMix: transforms begins with Resize, which mixes no images; begin with'):
        RandomMix([dict(type='mmdet.Resize', scale=(8, 8))])
    with rejects('RandomMix: transforms begins with nothing'):
        RandomMix([])
    with rejects('RandomMix: the samples have masks, which are not mixed; leave'):
        RandomMix(BLEND)(dict(sample(0, []), gt_masks=[], mix_results=[sample(0, [])]))
