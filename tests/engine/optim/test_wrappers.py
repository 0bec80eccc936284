"""The optimizer wrapper for mixed precision."""

import math

import pytest
import torch
from rejection import rejects
from torch import nn

from vit_plugin.engine import AmpOptimWrapper
from vit_plugin.models import VisionTransformer


def wrap(model: nn.Module, **kwargs) -> AmpOptimWrapper:
    return AmpOptimWrapper(optimizer=torch.optim.SGD(model.parameters(), lr=0.1), **kwargs)


def test_bfloat16_on_a_cpu_trains_without_loss_scaling():
    model = nn.Linear(4, 4)
    before = model.weight.clone()
    wrapper = wrap(model, clip_grad=dict(max_norm=1.0))
    with wrapper.optim_context(model):
        output = model(torch.randn(2, 4))
    assert output.dtype == torch.bfloat16
    wrapper.update_params(output.float().square().sum())
    assert not torch.equal(model.weight, before)
    assert not wrapper.loss_scaler.is_enabled()


@pytest.mark.parametrize('fused', [True, False])
def test_attention_is_fused_only_if_configured(fused):
    model = nn.MultiheadAttention(8, 2, batch_first=True)
    wrapper = wrap(model, fused_attention=fused)
    query = torch.randn(2, 3, 8)
    with torch.profiler.profile() as profile, wrapper.optim_context(model):
        model(query, query, query, need_weights=False)
    assert any('flash_attention' in event.key for event in profile.key_averages()) is fused


def test_recomputed_attention_is_not_fused_either():
    model = VisionTransformer(
        arch=dict(embed_dims=16, num_layers=2, num_heads=2, feedforward_channels=16),
        img_size=32,
        with_cp=True,
    ).train()
    wrapper = wrap(model, fused_attention=False)
    with torch.profiler.profile() as profile:
        with wrapper.optim_context(model):
            loss = model(torch.randn(2, 3, 32, 32))[0].float().square().sum()
        wrapper.update_params(loss)
    assert not any('flash_attention' in event.key for event in profile.key_averages())


@pytest.mark.parametrize(('scale', 'counts'), [(2.0**16, False), (1.0, True)])
def test_only_overflow_without_a_loss_scale_counts_as_skipped(scale, counts):
    model = nn.Linear(1, 1, bias=False)
    before = model.weight.clone()
    wrapper = wrap(model, clip_grad=dict(max_norm=1.0))
    wrapper.defer_grad_norm(skips_non_finite=True)
    wrapper.loss_scaler = torch.amp.GradScaler('cpu', init_scale=scale)  # as on a GPU with float16
    # Finite without the loss scale, or infinite even without it.
    huge = math.inf if counts else 1e36
    model.weight.register_hook(lambda grad: grad * huge)
    wrapper.update_params(model(torch.ones(1)).sum())
    assert wrapper.last_update.skipped is counts
    assert torch.equal(model.weight, before)
    assert wrapper.loss_scaler.get_scale() == scale / 2


def test_state_is_loaded():
    wrapper = wrap(nn.Linear(4, 4))
    other = wrap(nn.Linear(4, 4))
    other.load_state_dict(wrapper.state_dict())
    assert other.optimizer.state_dict() == wrapper.optimizer.state_dict()


@pytest.mark.parametrize(
    ('dtype', 'words'),
    [
        ('float16', "is not possible on the device 'cpu'; choose bfloat16"),
        ('float8', "must be 'bfloat16' or 'float16'"),
    ],
)
def test_unsupported_dtypes_raise(dtype, words):
    with rejects(f"dtype='{dtype}' {words}"):
        wrap(nn.Linear(4, 4), dtype=dtype)


@pytest.mark.parametrize('name', ['growth_factor', 'backoff_factor'])
def test_options_that_torch_rejects_raise(name):
    with rejects(name):
        wrap(nn.Linear(4, 4), loss_scale={name: 1.0})
