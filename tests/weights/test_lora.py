"""LoRA adapters in a checkpoint are merged into the weights that they adapt."""

import pytest
import torch
from rejection import rejects

from vit_plugin.weights.opening import Checkpoint

ADAPTED = {
    'blocks.0.attn.qkv.base_layer.weight': torch.ones(6, 4),
    'blocks.0.attn.qkv.base_layer.bias': torch.zeros(6),
    'blocks.0.attn.qkv.lora_A.default.weight': torch.arange(8.0).view(2, 4),
    'blocks.0.attn.qkv.lora_B.default.weight': torch.arange(12.0).view(6, 2),
    'norm.weight': torch.ones(4),
}


def test_adapters_are_merged_when_weights_are_read():
    merged = Checkpoint(
        'x.pth', dict(meta=dict(lora=dict(r=2, alpha=8.0)), state_dict=ADAPTED)
    ).weights
    assert merged.keys() == {'blocks.0.attn.qkv.weight', 'blocks.0.attn.qkv.bias', 'norm.weight'}
    product = (
        ADAPTED['blocks.0.attn.qkv.lora_B.default.weight']
        @ ADAPTED['blocks.0.attn.qkv.lora_A.default.weight']
    )
    # Base weights of 1, and the scale alpha / r.
    assert torch.equal(merged['blocks.0.attn.qkv.weight'], 1 + 8 / 2 * product)


@pytest.mark.parametrize(
    'lora', [None, dict(r=2), dict(r=0, alpha=8.0), dict(r=2, alpha='8'), 'text']
)
def test_adapters_without_a_valid_scale_are_refused(lora):
    with rejects('its meta lacks their scale'):
        assert Checkpoint('x.pth', dict(meta=dict(lora=lora), state_dict=ADAPTED)).weights
    with rejects('its meta lacks their scale'):
        assert Checkpoint('x.pth', ADAPTED).weights


@pytest.mark.parametrize('missing', ['base_layer.weight', 'lora_B.default.weight'])
def test_incomplete_adapters_are_refused(missing):
    state = {name: value for name, value in ADAPTED.items() if not name.endswith(missing)}
    content = dict(meta=dict(lora=dict(r=2, alpha=8.0)), state_dict=state)
    with rejects(r'blocks.0.attn.qkv.lora_A.default.weight, but lacks .*: it is damaged'):
        assert Checkpoint('x.pth', content).weights


@pytest.mark.parametrize(
    ('name', 'shape', 'words'),
    [
        ('lora_B.default.weight', (6, 3), r'\(6, 3\) are not of a layer \(6, 4\)'),
        ('lora_magnitude_vector.default.weight', (6,), 'of no plain LoRA adapter named default'),
        ('lora_A.second.weight', (2, 4), 'of no plain LoRA adapter named default'),
    ],
)
def test_adapters_that_cannot_be_merged_are_refused(name, shape, words):
    state = {**ADAPTED, f'blocks.0.attn.qkv.{name}': torch.ones(shape)}
    content = dict(meta=dict(lora=dict(r=2, alpha=8.0)), state_dict=state)
    with rejects(words):
        assert Checkpoint('x.pth', content).weights
