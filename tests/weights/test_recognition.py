"""Wrappers around the names of weights, and containers around them, are seen through."""

import re

import pytest
import timm
import torch

from vit_plugin.errors import ConfigError
from vit_plugin.weights import recognition
from vit_plugin.weights.formats.own import OWN
from vit_plugin.weights.opening import Checkpoint
from vit_plugin.weights.recognition import recognize, without_wrapper_prefixes

STATE = {
    name: torch.full_like(value, i)
    for i, (name, value) in enumerate(
        timm.create_model('test_vit', num_classes=3).state_dict().items()
    )
}
OTHER = {name: value + 100 for name, value in STATE.items()}


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
def test_words_of_wrappers_change_nothing(prefix):
    found = recognize({prefix + name: value for name, value in STATE.items()})
    wanted = recognize(STATE)
    assert found.format == wanted.format
    assert found.keys() == wanted.keys()
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)


@pytest.mark.parametrize('prefix', ['', 'backbone.'])
def test_no_other_format_is_tried_where_all_names_are_ours(prefix, monkeypatch):
    ours = dict(recognize(STATE))
    named = {prefix + name: value for name, value in ours.items()}
    monkeypatch.setattr(recognition, 'FORMATS', {})
    found = recognize(named, targets=ours)
    assert found.format is OWN
    assert all(torch.equal(found[name], value) for name, value in ours.items())
    with pytest.raises(ConfigError):  # one that is nobody's: others may explain it
        recognize({**named, 'other': torch.ones(1)}, targets=ours)


@pytest.mark.parametrize('word', ['_orig_mod', '_checkpoint_wrapped_module'])
def test_a_wrapped_part_has_the_word_within_its_names(word):
    compiled = {
        name.replace('blocks.0.', f'blocks.0.{word}.'): value for name, value in STATE.items()
    }
    assert without_wrapper_prefixes(compiled).keys() == STATE.keys()
    kept = {'a': torch.ones(1), '_orig_mod.a': torch.ones(1)}  # which would be one name
    assert without_wrapper_prefixes(kept) is kept


@pytest.mark.parametrize('prefix', ['', 'backbone.'])
def test_chunks_of_blocks_are_those_of_dinov2s_training(prefix):
    """Each chunk numbers its blocks as the model does: ``blocks.1.3.`` is the fourth."""
    chunked = {
        prefix
        + re.sub(
            r'^blocks\.(\d+)', lambda found: f'blocks.{int(found[1]) // 2}.{found[1]}', name
        ): value
        for name, value in STATE.items()
        if not name.startswith('head')
    }
    assert f'{prefix}blocks.1.3.attn.qkv.weight' in chunked
    chunked |= {
        f'{prefix}mask_token': torch.ones(1, 64),
        'dino_head.last_layer.weight': torch.ones(2, 2),
    }
    found = recognize(chunked)
    wanted = recognize({**STATE, 'mask_token': torch.ones(1, 64)})
    assert found.format == wanted.format
    assert found.keys() == wanted.keys() - {'head.layers.head.weight', 'head.layers.head.bias'}
    assert all(torch.equal(found[name], wanted[name]) for name in found)


@pytest.mark.parametrize(
    'content',
    [
        dict(ema=dict(module=STATE)),
        dict(model=OTHER, ema=dict(module=STATE, updates=3)),
        dict(state_dict=OTHER, state_dict_ema=STATE),
        dict(model=OTHER, model_ema=STATE, epoch=3),
        dict(state_dict=STATE, **{'pytorch-lightning_version': '2.5.0'}),
    ],
)
def test_averages_are_what_was_tested(content, monkeypatch):
    said = []
    monkeypatch.setattr(
        'vit_plugin.weights.reading.files.print_log', lambda text, *_: said.append(text)
    )
    assert Checkpoint('x.pth', content).weights == STATE
    several = len({'model', 'state_dict'} & content.keys()) and any(
        'ema' in name for name in content
    )
    assert bool(said) == bool(several)
    assert all('the averages in' in text for text in said)
