"""Depth heads take the maps of any backbone, and read the class token as in the paper."""

from types import SimpleNamespace

import pytest
import torch
from rejection import rejects
from tiny_models import TINY, TINY_SIZES
from torch.nn import functional as F

from vit_plugin.models import DPTDepthHead, LinearDepthHead, VisionTransformer
from vit_plugin.projects.depth.dpt_head import Reassemble

CNN = dict(TINY_SIZES, patch_size=1, resnet=dict(stage_depths=(1, 1), width=32))
BACKBONES = {
    'tokens of four blocks': dict(arch=dict(TINY, num_layers=4), out_indices=(0, 1, 2, 3)),
    'with the class token': dict(
        arch=dict(TINY, num_layers=4), out_indices=(0, 1, 2, 3), out_type='pyramid_cls'
    ),
    "a hybrid's maps and tokens": dict(arch=CNN, out_type='pyramid_cls'),
    "a CNN's maps": dict(arch=dict(CNN, num_layers=0), out_type='pyramid', with_cls_token=False),
    'one map': dict(arch=TINY, out_type='featmap'),
}


@pytest.mark.parametrize('name', BACKBONES)
@pytest.mark.parametrize('kind', ['DPT', 'linear'])
def test_heads_predict_each_pixel_and_train_each_weight(name, kind):
    backbone = VisionTransformer(**{'img_size': 32, 'out_type': 'pyramid', **BACKBONES[name]})
    channels, has_class_token = backbone.channels, backbone.out_type == 'pyramid_cls'
    head = (
        LinearDepthHead(channels, max_depth=10.0, num_bins=8)
        if kind == 'linear'
        else DPTDepthHead(
            channels,
            backbone.strides,
            readout_type='project' if has_class_token else 'ignore',
            channels=16,
            max_depth=10.0,
        )
    )
    depth = head(backbone(torch.randn(2, 3, 32, 48)))
    factor = 1 if kind == 'DPT' else backbone.strides[0] / 4  # the linear head enlarges by 4
    assert depth.shape == (2, 1, 32 / factor, 48 / factor)
    assert 0 < depth.min() < depth.max() < 10
    depth.sum().backward()
    assert all(weight.grad is not None for weight in head.parameters() if weight.requires_grad)


@pytest.mark.parametrize('readout_type', ['ignore', 'add', 'project'])
def test_readouts_of_the_class_token_follow_their_equations(readout_type):
    """Equations 2 to 4 of the DPT paper."""
    part = Reassemble(4 if readout_type == 'ignore' else 8, 4, readout_type, 1)
    part.projection = torch.nn.Identity()
    tokens, class_token = torch.randn(2, 6, 4), torch.randn(2, 1, 4)
    both = torch.cat((tokens, class_token.expand_as(tokens)), dim=-1)
    expected = {
        'ignore': lambda: tokens,
        'add': lambda: tokens + class_token,
        'project': lambda: F.gelu(F.linear(both, part.read.weight, part.read.bias)),
    }[readout_type]()
    inputs = tokens if readout_type == 'ignore' else both
    output = part(inputs.transpose(1, 2).unflatten(2, (2, 3)))
    torch.testing.assert_close(output.flatten(2).transpose(1, 2), expected)


def test_linear_head_predicts_the_weighted_mean_of_the_bins():
    head = LinearDepthHead(2, max_depth=3.0, min_depth=1.0, num_bins=3, upsample=1)
    torch.nn.init.zeros_(head.conv_depth.weight)
    head.conv_depth.bias.data = torch.tensor([-1.0, 0.4, 0.9])
    shares = torch.tensor([0.1, 0.5, 1.0]) / 1.6
    expected = (shares * torch.tensor([1.0, 2.0, 3.0])).sum()
    torch.testing.assert_close(head((torch.randn(1, 2, 1, 1),)), expected.reshape(1, 1, 1, 1))


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (dict(in_channels=(8, 8), strides=(8,)), 'have one value for each map, but 2 and 1'),
        (dict(in_channels=(8, 8, 8), strides=(4, 6, 16)), 'stride 4 does not become'),
        (
            dict(in_channels=(8, 16), strides=(4, 8), level_channels=(4, 16)),
            r'level_channels\[0\]=4, but the map of the CNN has 8',
        ),
    ],
)
def test_incompatible_maps_raise(arguments, message):
    with rejects(message):
        DPTDepthHead(**arguments)


def test_losses_of_one_name_are_added():
    loss = dict(type='vit_plugin.SiLogLoss')
    head = LinearDepthHead((32,), max_depth=10.0, num_bins=8, loss_decode=[loss] * 2)
    maps, true = [torch.randn(1, 32, 2, 2)], torch.ones(1, 8, 8)
    sample = SimpleNamespace(gt_depth_map=SimpleNamespace(data=true))
    losses = head.loss(maps, [sample], None)
    torch.testing.assert_close(losses['loss_silog'], 2 * head.losses[0](head(maps), true[None]))
