"""ViTDet's simple feature pyramid: shapes, number of parameters, and refused arguments."""

import pytest
import torch
from model_states import assert_all_learn
from rejection import rejects

from vit_plugin.models import SimpleFPN
from vit_plugin.registry import MODELS


@pytest.mark.parametrize('add_extra_convs', [False, True])
def test_scales_and_extra_levels(add_extra_convs):
    neck = MODELS.build(
        dict(
            type='vit_plugin.SimpleFPN',
            in_channels=16,
            out_channels=8,
            num_outs=6,
            add_extra_convs=add_extra_convs,
        )
    )
    x = torch.randn(2, 16, 5, 7)
    outs = neck(x)
    assert [tuple(out.shape) for out in outs] == [
        (2, 8, 20, 28),
        (2, 8, 10, 14),
        (2, 8, 5, 7),
        (2, 8, 2, 3),
        (2, 8, 1, 2),
        (2, 8, 1, 1),
    ]
    # The neck takes the last of several maps.
    for out, expected in zip(outs, neck((torch.randn(2, 16, 9, 9), x)), strict=True):
        assert torch.equal(out, expected)
    sum(out.sum() for out in outs).backward()
    assert_all_learn(neck)


def test_extra_levels_without_convolutions_take_every_second_element():
    outs = SimpleFPN([32, 16], 8, num_outs=3, scales=(1, 0.5))(torch.randn(1, 16, 8, 8))
    assert torch.equal(outs[2], outs[1][:, :, ::2, ::2])


def test_number_of_parameters_equals_vitdets():
    """detectron2's layers for ViT-B: up-convolutions 768 -> 384 -> 192, and 256 channels."""
    up4 = 768 * 384 * 4 + 384 + 2 * 384 + 384 * 192 * 4 + 192
    up2 = 768 * 384 * 4 + 384
    lateral = 256 * (192 + 384 + 768 + 768) + 4 * 2 * 256
    output = 4 * (256 * 256 * 9 + 2 * 256)
    assert (
        sum(parameter.numel() for parameter in SimpleFPN(768).parameters())
        == up4 + up2 + lateral + output
    )


@pytest.mark.parametrize(
    ('cfg', 'words'),
    [
        (dict(scales=(3, 1)), r'scales\[0\]=3 must be a power of two'),
        (dict(scales=()), r'scales=\(\) must have at least 1 item'),
        (dict(add_extra_convs='on_input'), "add_extra_convs='on_input' must .*'on_output'"),
        (dict(num_outs=2), 'num_outs=2 is fewer than the 4 scales'),
        (dict(scales=(32,)), 'in_channels=16 cannot be halved for each doubling'),
    ],
)
def test_invalid_arguments_raise(cfg, words):
    with rejects(words):
        SimpleFPN(16, **cfg)


@pytest.mark.parametrize('features', [torch.zeros(1, 8, 4, 4), torch.zeros(1, 16)])
def test_features_of_another_shape_raise(features):
    with rejects(r'takes a map \(B, in_channels=16, h, w\): set in_channels'):
        SimpleFPN(16)((features,))
