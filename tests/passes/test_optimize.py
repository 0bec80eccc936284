"""All passes together change no result, and are undone."""

import copy

import pytest
import torch

from vit_plugin.models import VisionTransformer
from vit_plugin.models.layers import StdConv2d
from vit_plugin.passes import onednn, optimize, processor, restore
from vit_plugin.passes.fold import Folded
from vit_plugin.passes.onednn import OneDnnMlp


def snapshot(model: torch.nn.Module) -> dict:
    """The class and the public attributes of each module, which passes change."""
    return {
        name: (type(module), {key for key in vars(module) if not key.startswith('_')})
        for name, module in model.named_modules()
    }


@pytest.mark.parametrize('out_type', ['cls_token', 'pyramid'])
def test_optimizing_changes_no_result_and_is_undone(tiny_hybrid, out_type, monkeypatch):
    monkeypatch.setattr(onednn, 'MIN_PRODUCTS', 0)
    model = VisionTransformer(**tiny_hybrid, drop_rate=0.2, out_type=out_type).eval()
    plain, images, before = copy.deepcopy(model), torch.randn(2, 3, 40, 48), snapshot(model)
    state = {name: value.clone() for name, value in model.state_dict().items()}
    assert optimize(model) is model
    assert snapshot(model) != before
    with torch.no_grad():
        for ours, theirs in zip(model(images), plain(images), strict=True):
            torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)
            assert ours.is_contiguous()
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    for trained in (model, plain):
        torch.manual_seed(1)  # for dropout
        trained.train()(images)[0].square().mean().backward()
    for ours, theirs in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad, atol=1e-6, rtol=1e-4)
    plain.eval()
    assert restore(model.eval()) is model
    assert snapshot(model) == before
    assert torch.equal(model(images)[0], plain(images)[0])


def test_passes_depend_on_mode_and_device(tiny_hybrid):
    def applied(training: bool, device: str | None = None) -> tuple[bool, bool]:
        """Whether kernels are folded, and whether MLPs are fused."""
        modules = list(optimize(VisionTransformer(**tiny_hybrid).train(training), device).modules())
        return (
            any(
                isinstance(module.kernel, Folded)
                for module in modules
                if isinstance(module, StdConv2d)
            ),
            any(isinstance(module, OneDnnMlp) for module in modules),
        )

    fuses = onednn.is_available() and processor.instruction_set() in onednn.ONEDNN_INSTRUCTION_SETS
    assert applied(training=False) == (True, fuses)
    assert applied(training=True) == applied(training=False, device='cuda') == (False, False)


def test_optimizing_in_training_removes_the_passes(tiny_hybrid):
    model = optimize(VisionTransformer(**tiny_hybrid).eval())
    optimize(model.train())
    assert not any(
        isinstance(value, Folded) for module in model.modules() for value in vars(module).values()
    )
