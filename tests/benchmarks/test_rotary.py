import pytest
import torch

from benchmarks import rotary

TINY = dict(embed_dims=32, num_layers=2, num_heads=2, feedforward_channels=128)


def test_all_models_run_and_ours_are_timms():
    taken = rotary.run(48, 1, arch=TINY)
    assert list(taken) == [
        'no positions',
        'ours, halves',
        "timm's Eva, halves",
        'ours, neighbours',
        "timm's Eva, neighbours",
    ]
    assert min(taken.values()) > 0


def test_another_computation_is_noticed(monkeypatch):
    made = rotary.models(48, TINY)
    torch.nn.init.normal_(made['ours, halves'].blocks[0].attn.qkv.weight)
    monkeypatch.setattr(rotary, 'models', lambda *args: made)
    with pytest.raises(AssertionError, match='halves'):
        rotary.run(48, 1)
