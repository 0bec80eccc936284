"""The campaign ``rotary`` times models that compute the same."""

import pytest
import torch

from benchmarks import rotary

TINY = dict(embed_dims=32, num_layers=2, num_heads=2, feedforward_channels=128)


def test_all_models_are_timed_and_ours_equal_timms():
    times = rotary.run(48, 1, arch=TINY)
    assert list(times) == [
        'no positions',
        'ours, halves',
        "timm's Eva, halves",
        'ours, neighbours',
        "timm's Eva, neighbours",
    ]
    assert min(times.values()) > 0


def test_different_outputs_raise(monkeypatch):
    models = rotary.models(48, TINY)
    torch.nn.init.normal_(models['ours, halves'].blocks[0].attn.qkv.weight)
    monkeypatch.setattr(rotary, 'models', lambda *args: models)
    with pytest.raises(AssertionError, match='halves'):
        rotary.run(48, 1)
