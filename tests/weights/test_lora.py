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


def test_adapters_without_a_scale_are_refused():
    for content in (ADAPTED, dict(meta=dict(lora=dict(r=2)), state_dict=ADAPTED)):
        with rejects('its meta lacks their scale'):
            assert Checkpoint('x.pth', content).weights
