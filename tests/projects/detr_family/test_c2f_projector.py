"""The projector of LW-DETR and RF-DETR.

test_lw_detr_head.py compares its outputs with those of transformers.
"""

import pytest
import torch
from model_states import assert_all_learn
from rejection import rejects

from vit_plugin.models import C2fProjector


# Maps of more than 512 channels have these halved before their size is doubled.
@pytest.mark.parametrize('channels', [32, 1024])
def test_scales(channels):
    neck = C2fProjector([channels] * 2, 16, scales=(2, 1, 0.5))
    outs = neck([torch.randn(1, channels, 6, 8) for _ in range(2)])
    assert [tuple(out.shape) for out in outs] == [(1, 16, 12, 16), (1, 16, 6, 8), (1, 16, 3, 4)]
    sum(out.square().mean() for out in outs).backward()
    assert_all_learn(neck)


@pytest.mark.parametrize(
    ('cfg', 'words'),
    [
        (dict(scales=(4,)), r'scales\[0\]=4'),
        (dict(scales=(1.5,)), r'scales\[0\]=1.5 must be a power of two'),
        (dict(norm_cfg=dict(type='BN1')), 'BN1'),
    ],
)
def test_wrong_arguments_raise(cfg, words):
    with rejects(words):
        C2fProjector([32], **cfg)


def test_wrong_maps_raise():
    with rejects(r'takes maps \(B, C, h, w\) of in_channels=\[32, 32\]'):
        C2fProjector([32, 32])([torch.randn(1, 32, 4, 4)])
