"""The hybrid encoder, its twin convolutions as one, and the CNN before it."""

import pytest
import torch
from model_states import assert_all_learn
from rejection import rejects
from torch import nn

from vit_plugin.models import HGNetV2, HybridEncoder
from vit_plugin.passes.optimize import optimize, restore
from vit_plugin.passes.precompute import precomputed


def encoder(**kwargs) -> nn.Module:
    torch.manual_seed(0)
    sizes = dict(out_channels=16, depth=0.34, expansion=0.5, num_heads=2, feedforward_channels=16)
    return HybridEncoder([8, 16, 24], **(sizes | kwargs))


def maps(rows: int = 9, columns: int = 12) -> list[torch.Tensor]:
    """Of an image whose sides no stride divides."""
    torch.manual_seed(0)
    sides = [(-(-rows // 2**k), -(-columns // 2**k)) for k in range(3)]
    return [torch.randn(2, c, *side) for c, side in zip((8, 16, 24), sides, strict=True)]


@pytest.mark.parametrize('kind', ['csp', 'elan', 'split', 'split_trailing'])
def test_sizes_and_gradients(kind):
    neck = encoder(kind=kind)
    outs = neck(maps())
    assert [tuple(out.shape) for out in outs] == [(2, 16, 9, 12), (2, 16, 5, 6), (2, 16, 3, 3)]
    sum(out.square().mean() for out in outs).backward()
    assert_all_learn(neck)


@pytest.mark.parametrize('kind', ['csp', 'elan', 'split'])
def test_twin_convolutions_are_one_for_an_export(kind):
    neck = encoder(kind=kind)
    for _ in range(2):
        neck(maps())  # statistics
    for parameter in neck.parameters():
        nn.init.normal_(parameter, std=0.2)
    neck.eval()
    names, convs = [*neck.state_dict()], sum(isinstance(m, nn.Conv2d) for m in neck.modules())
    with torch.no_grad():
        wanted = neck(maps())
        with precomputed(neck):
            assert sum(isinstance(m, nn.Conv2d) for m in neck.modules()) < convs
            found = neck(maps())
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-6 * other.abs().max().item())
    assert [*neck.state_dict()] == names


@pytest.mark.parametrize('frozen', [False, True])
@pytest.mark.parametrize('kind', ['csp', 'split'])
def test_twin_convolutions_are_one_after_optimize(kind, frozen):
    """As long as they rest: a write, a training or a restored model shows."""
    neck = encoder(kind=kind)
    neck(maps())  # statistics
    neck.eval()
    names, convs = [*neck.state_dict()], [one for one in neck.modules() if hasattr(one, 'single')]
    with torch.no_grad():
        wanted = neck(maps())
        optimize(neck, frozen=frozen)
        for _ in range(2):
            for one, other in zip(neck(maps()), wanted, strict=True):
                torch.testing.assert_close(one, other, rtol=0, atol=1e-6 * other.abs().max())
        assert all(one.forward.cached for one in convs)
        convs[0].conv1.conv.weight.mul_(2)
        changed = neck(maps())
        restore(neck)
        assert not any('forward' in vars(one) for one in convs)
        for one, other in zip(changed, neck(maps()), strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=1e-6 * other.abs().max())
    assert [*neck.state_dict()] == names


def test_twin_convolutions_learn_after_optimize():
    neck = optimize(encoder(kind='split').eval()).train()
    sum(out.square().mean() for out in neck(maps())).backward()
    assert_all_learn(neck)


@pytest.mark.parametrize(
    ('cfg', 'words'),
    [
        (dict(projects=False), r'in_channels=\[8, 16, 24\] must all be 16'),
        (dict(attended=(3,)), r'attended=\[3\] must be from 0 to 2'),
        (dict(kind='elan4'), 'kind'),
    ],
)
def test_errors(cfg, words):
    with rejects(words):
        encoder(**cfg)


def test_a_cnn_is_loaded_by_timms_names():
    import timm

    theirs = timm.create_model('hgnetv2_b0', num_classes=0).eval()
    ours = HGNetV2('B0').eval()
    report = ours.load(theirs.state_dict())
    images = torch.rand(1, 3, 64, 64)
    with torch.no_grad():
        wanted = theirs.forward_features(images)
        torch.testing.assert_close(ours(images)[-1], wanted, rtol=0, atol=1e-5)
    assert not report.initialized
    with rejects("does not fit the model 'hgnetv2_b4' of timm"):
        HGNetV2('B4', learnable_affine=False).load(theirs.state_dict())


def test_other_maps():
    with rejects(r'takes maps \(B, C, h, w\) of in_channels=\[8, 16, 24\]'):
        encoder()(maps()[:2])
