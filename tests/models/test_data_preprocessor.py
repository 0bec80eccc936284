"""Preprocessors that augment a whole batch, against MMPretrain's transforms."""

import numpy as np
import pytest
import torch
from mmengine.registry import MODELS
from mmpretrain.datasets.transforms import RandomFlip
from mmpretrain.structures import DataSample
from rejection import rejects

NORMALIZATION = dict(mean=[1.0, 2.0, 3.0], std=[2.0, 2.0, 2.0], to_rgb=True)


def batch(count: int = 12) -> dict:
    """Different images of 4 x 4 pixels, of three classes."""
    images = (
        torch.arange(count * 48, dtype=torch.float)
        .remainder(256)
        .to(torch.uint8)
        .view(count, 3, 4, 4)
    )
    return dict(
        inputs=list(images), data_samples=[DataSample().set_gt_label(i % 3) for i in range(count)]
    )


def build(**kwargs):
    """An ``AugmentingPreprocessor``. Mixup needs the number of classes."""
    return MODELS.build(
        dict(NORMALIZATION, type='vit_plugin.AugmentingPreprocessor', num_classes=3, **kwargs)
    )


def test_training_batches_are_augmented_then_normalized():
    preprocessor = build(augments=[dict(type='RandomFlip', prob=0.5, direction='horizontal')])
    np.random.seed(0)
    result = preprocessor(batch(), training=True)['inputs']
    # The batch version draws the same random numbers in the same order, one for each image.
    np.random.seed(0)
    flip = RandomFlip(prob=0.5, direction='horizontal')
    flipped = [
        flip(dict(img=image.permute(1, 2, 0).numpy()))['img'][..., ::-1]  # to RGB
        for image in batch()['inputs']
    ]
    pixels = torch.from_numpy(np.stack(flipped)).permute(0, 3, 1, 2)
    assert torch.equal(result, (pixels - preprocessor.mean) / preprocessor.std)
    # Without training=True nothing is augmented.
    assert torch.equal(preprocessor(batch())['inputs'], build()(batch())['inputs'])


def test_batch_augments_follow_augments():
    preprocessor = build(
        augments=[dict(type='RandomErasing', erase_prob=1.0)],
        batch_augments=dict(augments=[dict(type='Mixup', alpha=0.8)]),
    )
    result = preprocessor(batch(), training=True)
    assert result['data_samples'][0].gt_score.sum().item() == pytest.approx(1)
    assert result['inputs'].shape == (12, 3, 4, 4)


def test_augments_that_do_not_take_batches_raise():
    with rejects('augments.*GaussianBlur cannot be applied to batches'):
        build(augments=[dict(type='GaussianBlur', radius=1)])


VIEWS = dict(
    type='vit_plugin.MultiViewPreprocessor',
    **NORMALIZATION,
    views=[
        dict(number=2, augments=[dict(type='RandomResizedCrop', scale=4)]),
        dict(augments=[dict(type='RandomResizedCrop', scale=2), dict(type='RandomFlip', prob=0.5)]),
    ],
)


def test_views_are_made_only_in_training():
    preprocessor = MODELS.build(VIEWS)
    np.random.seed(0)
    views = preprocessor(batch(), training=True)['inputs']
    assert [tuple(view.shape) for view in views] == [(12, 3, 4, 4), (12, 3, 4, 4), (12, 3, 2, 2)]
    assert not torch.equal(views[0], views[1])
    whole = preprocessor(batch())
    assert torch.equal(whole['inputs'], build()(batch())['inputs'])
    assert len(whole['data_samples']) == 12
    stacked = preprocessor(dict(batch(), inputs=torch.stack(batch()['inputs'])))
    assert torch.equal(stacked['inputs'], whole['inputs'])


def test_a_single_view_is_a_tensor():
    view = MODELS.build(dict(VIEWS, views=[dict(augments=[])]))(batch(), training=True)['inputs']
    assert view.shape == (12, 3, 4, 4)


def test_invalid_views_raise():
    for views, words in (
        (
            [dict(augments=[dict(type='GaussianBlur', radius=1)])],
            r'augments: GaussianBlur cannot be applied to batches',
        ),
        ([dict(number=2)], r'views\[0\] needs augments'),
        ([], 'views'),
    ):
        with rejects(words):
            MODELS.build(dict(VIEWS, views=views))
