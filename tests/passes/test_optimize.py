import copy

import pytest
import torch

from vit_plugin.models import VisionTransformer
from vit_plugin.models.layers import StdConv2d
from vit_plugin.passes import onednn, optimize, restore
from vit_plugin.passes.fold import Folded
from vit_plugin.passes.onednn import OneDnnLinear


@pytest.fixture(autouse=True)
def small_ones_in_small_blocks(monkeypatch):
    monkeypatch.setattr(onednn, 'MIN_PRODUCTS', 0)
    monkeypatch.setattr(onednn, 'ROWS', 3)


def snapshot(model: torch.nn.Module) -> dict:
    return {name: (type(module), {key for key in vars(module) if not key.startswith('_')})
            for name, module in model.named_modules()}


@pytest.mark.parametrize('training', [False, True])
@pytest.mark.parametrize('out_type', ['cls_token', 'pyramid'])
def test_it_changes_nothing_that_is_computed_and_is_undone(tiny_hybrid, training, out_type):
    model = VisionTransformer(**tiny_hybrid, out_type=out_type).train(training)
    plain, images, before = copy.deepcopy(model), torch.randn(2, 3, 40, 48), snapshot(model)
    state = {name: value.clone() for name, value in model.state_dict().items()}
    assert optimize(model, linear='onednn') is model
    assert snapshot(model) != before
    outs, expected = model(images), plain(images)
    for ours, theirs in zip(outs, expected, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)
        assert ours.is_contiguous()
    if training:
        for out in (outs, expected):
            sum(feature.square().sum() for feature in out).backward()
        for ours, theirs in zip(model.parameters(), plain.parameters(), strict=True):
            torch.testing.assert_close(ours.grad, theirs.grad, atol=1e-3, rtol=1e-3)
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    assert restore(model) is model
    assert snapshot(model) == before
    assert torch.equal(model(images)[0], plain(images)[0])


def test_what_is_done_where(tiny_hybrid):
    def done(**kwargs) -> tuple[bool, bool]:
        modules = list(optimize(VisionTransformer(**tiny_hybrid), **kwargs).modules())
        return (any(isinstance(module.kernel, Folded) for module in modules if isinstance(module, StdConv2d)),
                any(isinstance(module, OneDnnLinear) for module in modules))

    if onednn.is_available():
        assert done(training=False, linear='onednn') == (True, True)
        assert done(training=True, linear='onednn') == (False, True)
    assert done(training=False, linear='torch') == (True, False)
    assert done(device='cuda') == (False, False)


def test_again_for_another_use(tiny_hybrid):
    model = optimize(VisionTransformer(**tiny_hybrid), training=False)
    optimize(model, training=True)
    assert not any(isinstance(value, Folded) for module in model.modules() for value in vars(module).values())


def test_the_row_of_an_unknown_processor_is_empty(tiny, monkeypatch):
    monkeypatch.setattr(onednn.processor, 'vendor', lambda: '')
    model = optimize(VisionTransformer(**tiny))
    assert not any(isinstance(module, OneDnnLinear) for module in model.modules())
