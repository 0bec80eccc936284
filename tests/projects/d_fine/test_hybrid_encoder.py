"""The hybrid encoder, the fusion of its twin convolutions, and HGNetV2.

Twin convolutions are a 3 x 3 and a 1 x 1 convolution in parallel, as in RepVGG. For inference, one
convolution computes the same.
"""

from collections.abc import Sequence

import pytest
import torch
from model_states import assert_all_learn
from rejection import rejects
from torch import nn

from vit_plugin.models import HGNetV2, HybridEncoder
from vit_plugin.passes.optimize import optimize, restore
from vit_plugin.passes.precompute import precomputed


def encoder(**kwargs) -> nn.Module:
    """A small neck with random weights."""
    torch.manual_seed(0)
    options = dict(out_channels=16, depth=0.34, expansion=0.5, num_heads=2, feedforward_channels=16)
    return HybridEncoder([8, 16, 24], **(options | kwargs))


def maps(rows: int = 9, columns: int = 12) -> list[torch.Tensor]:
    """The three maps of a batch of two, each of half the size of the one before, rounded up.

    Args:
        rows, columns: the size of the finest. With these, a size is odd and so not simply halved.
    """
    torch.manual_seed(0)
    sides = [(-(-rows // 2**k), -(-columns // 2**k)) for k in range(3)]
    return [torch.randn(2, c, *side) for c, side in zip((8, 16, 24), sides, strict=True)]


def assert_close_maps(actual: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> None:
    """Assert that maps differ by rounding only."""
    for level, expected_level in zip(actual, expected, strict=True):
        atol = 1e-6 * expected_level.abs().max().item()
        torch.testing.assert_close(level, expected_level, rtol=0, atol=atol)


@pytest.mark.parametrize('kind', ['csp', 'elan', 'split', 'split_trailing'])
def test_sizes_and_gradients(kind):
    neck = encoder(kind=kind)
    outs = neck(maps())
    assert [tuple(out.shape) for out in outs] == [(2, 16, 9, 12), (2, 16, 5, 6), (2, 16, 3, 3)]
    sum(out.square().mean() for out in outs).backward()
    assert_all_learn(neck)


@pytest.mark.parametrize('kind', ['csp', 'elan', 'split'])
def test_twin_convolutions_are_fused_for_export(kind):
    neck = encoder(kind=kind)
    for _ in range(2):
        neck(maps())  # updates BatchNorm's running statistics, which are fused, too
    for parameter in neck.parameters():
        nn.init.normal_(parameter, std=0.2)
    neck.eval()
    names = [*neck.state_dict()]
    num_convs = sum(isinstance(module, nn.Conv2d) for module in neck.modules())
    with torch.no_grad():
        expected = neck(maps())
        with precomputed(neck):
            assert sum(isinstance(module, nn.Conv2d) for module in neck.modules()) < num_convs
            actual = neck(maps())
    assert_close_maps(actual, expected)
    assert [*neck.state_dict()] == names


@pytest.mark.parametrize('frozen', [False, True])
@pytest.mark.parametrize('kind', ['csp', 'split'])
def test_twin_convolutions_are_fused_by_optimize(kind, frozen):
    """Outputs stay correct after weights are changed, and after the pass is undone."""
    neck = encoder(kind=kind)
    neck(maps())  # updates BatchNorm's running statistics
    neck.eval()
    names = [*neck.state_dict()]
    # The method `fused_twins` returns one convolution for two.
    twins = [module for module in neck.modules() if hasattr(module, 'fused_twins')]
    with torch.no_grad():
        expected = neck(maps())
        optimize(neck, frozen=frozen)
        for _ in range(2):
            assert_close_maps(neck(maps()), expected)
        assert all(twin.forward.cached for twin in twins)  # (states of the tensors, fused module)
        twins[0].conv1.conv.weight.mul_(2)
        changed = neck(maps())
        restore(neck)
        assert not any('forward' in vars(twin) for twin in twins)
        assert_close_maps(changed, neck(maps()))
    assert [*neck.state_dict()] == names


@pytest.mark.parametrize('norm_cfg', [dict(type='GN', num_groups=2), dict(type='BN', affine=False)])
def test_twin_convolutions_stay_if_their_norms_cannot_be_folded(norm_cfg):
    neck = encoder(norm_cfg=norm_cfg).eval()
    with torch.no_grad():
        expected = neck(maps())
        with precomputed(neck):
            assert_close_maps(neck(maps()), expected)
        assert_close_maps(optimize(neck)(maps()), expected)


def test_twin_convolutions_learn_after_optimize():
    neck = optimize(encoder(kind='split').eval()).train()
    sum(out.square().mean() for out in neck(maps())).backward()
    assert_all_learn(neck)


@pytest.mark.parametrize(
    ('cfg', 'words'),
    [
        (dict(projects=False), r'in_channels=\[8, 16, 24\] must all be 16'),
        (dict(attended=(3,)), r'attended=\[3\] must be from 0 to 2'),
        (dict(num_heads=3), 'num_heads=3 must divide out_channels=16'),
        (dict(kind='elan4'), 'kind'),
    ],
)
def test_wrong_arguments_raise(cfg, words):
    with rejects(words):
        encoder(**cfg)


def test_hgnet_loads_weights_of_timm():
    import timm

    theirs = timm.create_model('hgnetv2_b0', num_classes=0).eval()
    ours = HGNetV2('B0').eval()
    report = ours.load(theirs.state_dict())
    images = torch.rand(1, 3, 64, 64)
    with torch.no_grad():
        expected = theirs.forward_features(images)
        torch.testing.assert_close(ours(images)[-1], expected, rtol=0, atol=1e-5)
    assert not report.initialized
    with rejects("does not fit the model 'hgnetv2_b4' of timm"):
        HGNetV2('B4', learnable_affine=False).load(theirs.state_dict())


def test_wrong_maps_raise():
    with rejects(r'takes maps \(B, C, h, w\) of in_channels=\[8, 16, 24\]'):
        encoder()(maps()[:2])
