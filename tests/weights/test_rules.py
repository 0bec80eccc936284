"""Rules convert keys and arrays in both directions."""

import pytest
import torch

from vit_plugin.weights.formats import FORMATS
from vit_plugin.weights.rules import Format, Rule


def test_rules_need_all_their_tensors():
    form = Format('three', (Rule(('q{i}', 'k{i}', 'v{i}'), 'qkv{i}'),))
    steps = form.plan(['q0', 'k0', 'v0', 'q1', 'v1'])
    assert [(step.ours, step.theirs) for step in steps] == [('qkv0', ('q0', 'k0', 'v0'))]
    arrays = {
        name: torch.full((2, 3), value) for name, value in (('q0', 1.0), ('k0', 2.0), ('v0', 3.0))
    }
    joined = steps[0].to_ours(arrays)
    assert joined[:, 0].tolist() == [1, 1, 2, 2, 3, 3]
    exported, _ = form.export({'qkv0': joined}, 1)
    assert {name: value.tolist() for name, value in exported.items()} == {
        name: value.tolist() for name, value in arrays.items()
    }


def test_formats_have_the_name_of_their_key():
    assert [form.name for form in FORMATS.values()] == [*FORMATS]


FORMATS_OF_BLOCKS = [
    name
    for name, form in FORMATS.items()
    if name not in ('vit_plugin', 'hf_aimv2')  # hf_aimv2 has names for gated MLPs only
    and any('blocks.{i}.' in rule.ours for rule in form.rules)
]


@pytest.mark.parametrize('name', FORMATS_OF_BLOCKS)
def test_each_key_is_used_once(name):
    form = FORMATS[name]
    state = {
        f'blocks.{i}.{part}': torch.zeros(shape)
        for i in range(2)
        for part, shape in {
            'norm1.weight': 8,
            'norm1.bias': 8,
            'attn.qkv.weight': (24, 8),
            'attn.qkv.bias': 24,
            'attn.proj.weight': (8, 8),
            'attn.proj.bias': 8,
            'mlp.fc1.weight': (16, 8),
            'mlp.fc1.bias': 16,
        }.items()
    }
    exported, omitted = form.export(state, heads=2)
    assert not omitted
    keys = [key for step in form.plan(exported, form.prefixes[0]) for key in step.theirs]
    assert sorted(keys) == sorted(exported)


def test_parts_of_one_array_are_written_in_its_order():
    """Files such as safetensors list keys by name, where the keys and values come first."""
    state = {
        f'neck.attn_pool.{part}.weight': torch.full((rows, 4), value)
        for part, rows, value in (('kv', 8, 2.0), ('q', 4, 1.0))
    }
    exported, _ = FORMATS['hf_siglip'].export(state, heads=2)
    joined = exported['vision_model.head.attention.in_proj_weight']
    assert joined[:, 0].tolist() == [1.0] * 4 + [2.0] * 8
