"""Blended objects: their positions and pixels, and how often images are mixed."""

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
    """An image of one value, with boxes filled with 200, all of class 1."""
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
    """Blend objects of the source into the target."""
    np.random.seed(seed)
    return CopyBlend(**options).transform(dict(target, mix_results=[source]))


def test_objects_are_blended_inside_their_box():
    source = sample(0, [(10, 10, 30, 25)])
    for seed in range(20):
        result = blended(sample(100, []), source, seed, margins=(0.0, 0.0), weights=(0.5, 0.5))
        ((left, top, right, bottom),) = result['gt_bboxes'].tensor.int().tolist()
        assert (right - left, bottom - top) == (20, 15)
        inside = np.zeros((40, 60), bool)
        inside[top:bottom, left:right] = True
        assert (result['img'][inside] == 150).all()
        assert (result['img'][~inside] == 100).all()
        assert result['gt_bboxes_labels'].tolist() == [1]


def test_margins_are_blended_around_the_box():
    source = sample(0, [(20, 10, 40, 30)])
    options = dict(margins=(0.25, 0.25), weights=(0.5, 0.5))
    margins = set()
    for seed in range(20):
        result = blended(sample(100, []), source, seed, **options)
        ((left, top, right, bottom),) = result['gt_bboxes'].tensor.int().tolist()
        rows, columns = (result['img'][..., 0] == 50).nonzero()  # blended background of the source
        assert (result['img'][top:bottom, left:right] == 150).all()
        if len(rows):
            assert rows.min() >= top - 5
            assert columns.max() < right + 5
            margins.add(left - columns.min())
    # A quarter of the width, and less at the border of the image.
    assert margins <= {*range(6)}
    assert 5 in margins


def test_large_objects_are_scaled_to_fit_into_the_target():
    source = sample(0, [(0, 0, 120, 80)], size=(80, 120))
    result = blended(sample(100, []), source)
    assert result['gt_bboxes'].tensor.tolist() == [[0, 0, 60, 40]]


def test_objects_of_the_target_stay_and_inputs_are_not_modified():
    target, source = sample(100, [(0, 0, 10, 10)]), sample(0, [(10, 10, 30, 25)])
    before = target['img'].copy()
    result = blended(target, source)
    assert result['gt_bboxes'].tensor[0].tolist() == [0, 0, 10, 10]
    assert len(result['gt_bboxes']) == len(result['gt_ignore_flags']) == 2
    assert np.array_equal(target['img'], before)
    assert not np.array_equal(result['img'], before)


@pytest.mark.parametrize(
    ('boxes', 'ignored'), [([], ()), ([(0, 0, 9, 9)], ()), ([(0, 0, 20, 20)], (0,))]
)
def test_small_and_ignored_objects_are_not_copied(boxes, ignored):
    target = sample(100, [])
    result = blended(target, sample(0, boxes, ignored))
    assert len(result['gt_bboxes']) == 0
    assert np.array_equal(result['img'], target['img'])


def test_the_number_of_copied_objects_is_limited():
    boxes = [(12 * i, 0, 12 * i + 11, 11) for i in range(5)]
    assert len(blended(sample(0, []), sample(0, boxes))['gt_bboxes']) == 3  # the default
    assert len(blended(sample(0, []), sample(0, boxes), num_objects=9)['gt_bboxes']) == 5


def test_samples_are_mixed_with_a_probability():
    init_default_scope('mmdet')
    np.random.seed(0)
    mix = RandomMix(BLEND, prob=0.25)
    drawn = [mix.get_indexes(range(7)) for _ in range(400)]
    mixed = [indices for indices in drawn if indices]
    assert 70 < len(mixed) < 130  # 100 on average
    assert {index for indices in mixed for index in indices} == {*range(7)}
    target = sample(100, [])
    assert mix(dict(target, mix_results=[]))['img'] is target['img']


def test_transforms_and_samples_that_cannot_be_mixed_raise():
    with rejects('RandomMix: transforms begins with Resize, which mixes no images; begin with'):
        RandomMix([dict(type='mmdet.Resize', scale=(8, 8))])
    with rejects('RandomMix: transforms begins with nothing'):
        RandomMix([])
    with rejects('RandomMix: the samples have masks, which are not mixed; leave'):
        RandomMix(BLEND)(dict(sample(0, []), gt_masks=[], mix_results=[sample(0, [])]))
    with rejects('CopyBlend: the samples have masks, which are not blended; leave'):
        blended(dict(sample(0, []), gt_masks=[]), sample(0, []))
