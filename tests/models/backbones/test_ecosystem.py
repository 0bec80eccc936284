"""Hooks, FLOP counters, quantization and LoRA of other libraries, with and without the passes."""

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from vit_plugin.models import VisionTransformer
from vit_plugin.passes import onednn, optimize

pytestmark = pytest.mark.filterwarnings('ignore')  # of other libraries, at their import

LAYERS = ('qkv', 'proj', 'fc1', 'fc2')  # the linear layers of a block


@pytest.fixture(params=['tiny', 'tiny_hybrid'])
def cfg(request) -> dict:
    return request.getfixturevalue(request.param)


@pytest.fixture(params=['cls_token', 'featmap'])
def model(cfg, request) -> VisionTransformer:
    return VisionTransformer(**cfg, out_type=request.param).eval()


@pytest.fixture(params=[False, True], ids=['plain', 'optimized'])
def apply_passes(request, monkeypatch) -> Callable:
    """A function that optimizes a model, or does nothing."""
    monkeypatch.setattr(onednn, 'MIN_PRODUCTS', 0)  # fuse tiny MLPs too
    return optimize if request.param else (lambda model: model)


def test_global_hooks_and_the_flop_counter_see_every_linear_layer(model, apply_passes):
    apply_passes(model)
    layers = {
        name: module for name, module in model.named_modules() if isinstance(module, nn.Linear)
    }
    assert len(layers) == len(LAYERS) * 2  # of two blocks
    called = []
    handle = nn.modules.module.register_module_forward_hook(
        lambda module, args, out: called.append(module)
    )
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(torch.randn(2, 3, 32, 32))
    handle.remove()
    assert set(layers.values()) <= set(called)
    counted = counter.get_flop_counts()
    for name in layers:
        assert (
            sum(next(flops for key, flops in counted.items() if key.endswith(name)).values()) > 0
        ), name


@pytest.mark.parametrize('first', ['quantized', 'optimized'])
def test_int8_weights_keep_outputs_close(model, apply_passes, first):
    quantization = pytest.importorskip('torchao.quantization')
    images = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        (expected,) = model(images)
        steps = [
            lambda: quantization.quantize_(model, quantization.Int8WeightOnlyConfig()),
            lambda: apply_passes(model),
        ]
        for step in steps if first == 'quantized' else reversed(steps):
            step()
        (out,) = model(images)
    assert type(model.blocks[0].attn.qkv.weight) is not nn.Parameter
    assert 0 < (out - expected).norm() < 0.05 * expected.norm()


def test_lora_trains_and_merges(model, apply_passes):
    peft = pytest.importorskip('peft')
    apply_passes(model)
    images = torch.randn(2, 3, 32, 32)
    adapted = peft.get_peft_model(
        model,
        peft.LoraConfig(
            target_modules=list(LAYERS),
            exclude_modules='patch_embed.*',
            r=4,
            init_lora_weights=False,
        ),
    )
    adapted(images)[0].square().sum().backward()
    learning = {
        name: parameter for name, parameter in adapted.named_parameters() if parameter.requires_grad
    }
    assert len(learning) == 2 * len(LAYERS) * 2  # matrices A and B of each layer in two blocks
    assert all(parameter.grad.abs().max() > 0 for parameter in learning.values())
    with torch.no_grad():
        (out,) = adapted(images)
        torch.testing.assert_close(adapted.merge_and_unload()(images)[0], out, atol=1e-4, rtol=1e-4)
