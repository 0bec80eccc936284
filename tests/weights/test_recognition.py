"""Recognize weights despite wrappers around their names."""

import re

import pytest
import timm
import torch
from rejection import rejects

from vit_plugin.errors import ConfigError
from vit_plugin.weights import recognition
from vit_plugin.weights.formats.own import OWN
from vit_plugin.weights.recognition import recognize, without_wrapper_prefixes

# A small model of timm, whose tensors differ from one another.
STATE = {
    name: torch.full_like(value, i)
    for i, (name, value) in enumerate(
        timm.create_model('test_vit', num_classes=3).state_dict().items()
    )
}


@pytest.mark.parametrize(
    'prefix',
    [
        '',
        'module.',
        '_orig_mod.',
        'module._orig_mod.',
        '_orig_mod.module.',
        'model.',
        'net.',
        'classifier_network.',
        'net._orig_mod.',
        'module.module.',
        'model.module.',
        '_fsdp_wrapped_module.',
    ],
)
def test_prefixes_of_wrappers_are_ignored(prefix):
    recognized = recognize({prefix + name: value for name, value in STATE.items()})
    expected = recognize(STATE)
    assert recognized.format == expected.format
    assert recognized.keys() == expected.keys()
    assert all(torch.equal(recognized[name], expected[name]) for name in expected)


@pytest.mark.parametrize('prefix', ['', 'backbone.'])
def test_no_other_format_is_tried_if_all_names_are_ours(prefix, monkeypatch):
    ours = dict(recognize(STATE))
    prefixed = {prefix + name: value for name, value in ours.items()}
    monkeypatch.setattr(recognition, 'FORMATS', {})
    recognized = recognize(prefixed, targets=ours)
    assert recognized.format is OWN
    assert all(torch.equal(recognized[name], value) for name, value in ours.items())
    with pytest.raises(ConfigError):  # for a name that is not ours, other formats are tried
        recognize({**prefixed, 'other': torch.ones(1)}, targets=ours)


@pytest.mark.parametrize('word', ['_orig_mod', '_checkpoint_wrapped_module'])
def test_names_of_wrappers_within_keys_are_removed(word):
    compiled = {
        name.replace('blocks.0.', f'blocks.0.{word}.'): value for name, value in STATE.items()
    }
    assert without_wrapper_prefixes(compiled).keys() == STATE.keys()
    ambiguous = {'a': torch.ones(1), '_orig_mod.a': torch.ones(1)}  # both would become 'a'
    assert without_wrapper_prefixes(ambiguous) is ambiguous


@pytest.mark.parametrize('prefix', ['', 'backbone.'])
def test_chunks_of_blocks_from_dinov2s_training_are_flattened(prefix):
    """``blocks.1.3.`` is the fourth block of the model, in the second chunk."""
    chunked = {
        prefix
        + re.sub(
            r'^blocks\.(\d+)', lambda match: f'blocks.{int(match[1]) // 2}.{match[1]}', name
        ): value
        for name, value in STATE.items()
        if not name.startswith('head')
    }
    assert f'{prefix}blocks.1.3.attn.qkv.weight' in chunked
    chunked |= {
        f'{prefix}mask_token': torch.ones(1, 64),
        'dino_head.last_layer.weight': torch.ones(2, 2),
    }
    recognized = recognize(chunked)
    expected = recognize({**STATE, 'mask_token': torch.ones(1, 64)})
    assert recognized.format == expected.format
    assert recognized.keys() == expected.keys() - {
        'head.layers.head.weight',
        'head.layers.head.bias',
    }
    assert all(torch.equal(recognized[name], expected[name]) for name in recognized)


def test_scanned_blocks_without_a_dimension_of_blocks_raise():
    with rejects('hold different numbers of blocks: the checkpoint is damaged'):
        recognize({'Transformer/encoderblock/LayerNorm_0/scale': torch.tensor(1.0)})
