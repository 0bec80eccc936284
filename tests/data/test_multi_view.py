"""Augmentations of views draw the same numbers as MMPretrain's, and give nearly the same pixels."""

import random

import numpy as np
import pytest
import torch
from data.test_batch_augment import as_batch, as_image, assert_same, photo
from mmcv.transforms import RandomApply, RandomGrayscale
from mmpretrain.datasets import transforms as mmpretrain
from rejection import rejects

from vit_plugin.data.batch_transforms import BATCH_VERSIONS, apply_batched, check_batched
from vit_plugin.data.multi_view import turn_hue

TRANSFORMS = {
    'crop': lambda: mmpretrain.RandomResizedCrop(scale=(24, 32), crop_ratio_range=(0.3, 1.0)),
    'small crop': lambda: mmpretrain.RandomResizedCrop(
        scale=16, crop_ratio_range=(0.1, 0.3), interpolation='bicubic'
    ),
    'colors': lambda: mmpretrain.ColorJitter(0.4, 0.4, 0.2, 0.1),
    'hue': lambda: mmpretrain.ColorJitter(hue=0.5),
    'contrast': lambda: mmpretrain.ColorJitter(contrast=(0.2, 2.0)),
    'gray': lambda: RandomGrayscale(
        prob=0.5, keep_channels=True, channel_weights=(0.114, 0.587, 0.2989)
    ),
    'solarized': lambda: mmpretrain.Solarize(thr=128, prob=0.5),
    'some': lambda: RandomApply(
        [mmpretrain.ColorJitter(brightness=0.4), mmpretrain.RandomFlip(0.5)], prob=0.5
    ),
}


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('name', TRANSFORMS)
def test_a_batch_is_transformed_like_single_images(name):
    transform, different = TRANSFORMS[name](), set()
    ways = (
        lambda image: transform(dict(img=image))['img'],
        lambda image: as_image(apply_batched(transform, as_batch(image))),
    )
    for seed in range(6):
        results = []
        for change in ways:
            np.random.seed(seed)
            random.seed(seed)
            results.append(change(photo(seed)))
        assert_same(results[1], results[0], (name, seed))
        different.add(results[1].tobytes())
    assert len(different) > 3


def test_images_of_a_batch_are_drawn_independently():
    images = as_batch(photo(height=32, width=32)).repeat(32, 1, 1, 1)
    kept = images.clone()
    for make in TRANSFORMS.values():
        changed = apply_batched(make(), images)
        assert torch.equal(images, kept)
        assert len({image.numpy().tobytes() for image in changed}) > 1
        some_unchanged = (
            changed.shape == images.shape and (changed == images).flatten(1).all(1).any()
        )
        # These are applied with a probability.
        assert some_unchanged == (
            type(make()).__name__ in ('RandomGrayscale', 'Solarize', 'RandomApply')
        )


def test_hue_is_periodic():
    colors = torch.tensor([[0, 0, 255], [0, 255, 0], [255, 0, 0], [90, 90, 90]], dtype=torch.uint8)[
        ..., None, None
    ]
    third = torch.full((4,), 1 / 3)
    turned = turn_hue(colors, third)
    # BGR: red becomes green.
    assert turned[..., 0, 0].tolist() == [[0, 255, 0], [255, 0, 0], [0, 0, 255], [90, 90, 90]]
    assert torch.equal(turn_hue(turn_hue(turned, third), third), colors)


def test_transforms_without_a_batch_version_raise():
    with rejects("RandomResizedCrop of batches has no interpolation='lanczos'"):
        check_batched(mmpretrain.RandomResizedCrop(scale=8, interpolation='lanczos'))
    with rejects('GaussianBlur cannot be applied to batches'):
        check_batched(RandomApply([mmpretrain.GaussianBlur(radius=1)]))
    assert {'RandAugment', 'RandomApply', 'Solarize'} <= BATCH_VERSIONS.keys()
