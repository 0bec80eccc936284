"""Stochastic depth drops whole samples, and keeps the expectation."""

import pytest
import torch
from torch import nn

from vit_plugin.models.layers.drop_path import DropPath, build_drop_path


def test_samples_are_dropped_as_a_whole():
    torch.manual_seed(0)
    x = torch.ones(4000, 3, 2)
    out = DropPath(0.25).train()(x)
    assert out[:, 0, 0].unique().tolist() == pytest.approx([0.0, 1 / 0.75])
    assert (out == out[:, :1, :1]).all()
    assert out.mean().item() == pytest.approx(1.0, abs=0.05)


def test_nothing_is_dropped_in_eval_mode_or_at_rate_0():
    x = torch.randn(5, 3)
    assert DropPath(0.5).eval()(x) is x
    assert isinstance(build_drop_path(0.0), nn.Identity)


def test_drop_path_has_no_state_and_keeps_the_dtype():
    layer = DropPath(0.5).to(torch.bfloat16).train()
    assert not layer.state_dict()
    assert layer(torch.ones(8, 2, dtype=torch.bfloat16)).dtype is torch.bfloat16


def test_the_rate_is_set_again_after_to_empty():
    with torch.device('meta'):
        layer = DropPath(0.25)
    layer.to_empty(device='cpu').keep_prob.fill_(torch.nan)
    layer.reset_parameters()
    assert layer.keep_prob.item() == 0.75
