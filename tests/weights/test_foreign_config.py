"""Entries of another library's config raise unless they are read, unused, or at their default."""

from collections.abc import Sequence

import pytest
from rejection import rejects

from vit_plugin.arguments.fields import PositiveInt
from vit_plugin.weights.foreign_config import ConfigKind, ForeignConfig
from vit_plugin.weights.transformers_config import (
    STAGE_FIELDS,
    output_stages,
    transformers_kind,
)

INNER = ConfigKind(defaults=dict(depth=2), unused={'a reason': 'seed'})
KIND = ConfigKind(
    defaults=dict(width=8, act='gelu', eps=1e-6, sizes=(1, 2), flag=True, inside=None, most=None),
    unused={'of a training': 'rate decay'},
    aliases=dict(hidden='width'),
)


def read(**content) -> ForeignConfig:
    return ForeignConfig(content, KIND)


@pytest.mark.parametrize(
    'content',
    [
        {},
        dict(width=8, act='gelu', sizes=[1, 2], flag=True, most=None),
        dict(rate=0.5, decay='fast'),
        dict(hidden=8),
    ],
)
def test_defaults_and_unused_fields_pass(content):
    read(**content).check()


@pytest.mark.parametrize(
    ('content', 'words'),
    [
        (dict(width=9), 'has width=9, which no model here computes; give a model with width=8'),
        (dict(hidden=9), 'has width=9'),
        (dict(flag=1), 'has flag=1'),
        (dict(sizes=[1, 2, 3]), r'has sizes=\[1, 2, 3\]'),
        (dict(other='x' * 500), r"has other='x{10,40}\.\.\.x*', .*; give a model without other"),
        (dict(width=9, act='relu'), "width=9, act='relu', .* with width=8, with act='gelu'"),
    ],
)
def test_entries_that_nobody_read_raise_with_their_values(content, words):
    with rejects(f'its config.json {words}' if words.startswith('has') else words):
        read(**content).check()


def test_entries_that_were_read_pass():
    config = read(width=9, act='relu', eps=1, sizes=[3], flag=False)
    assert (config['width'], config['act'], config['eps'], config['flag']) == (9, 'relu', 1, False)
    assert config['sizes'] == [3]
    config.check()


def test_missing_entries_have_the_default_of_their_kind():
    assert (read()['width'], read()['sizes'], read().get('most', int | None)) == (8, (1, 2), None)


@pytest.mark.parametrize(
    ('content', 'name', 'annotation'),
    [
        (dict(width='9'), 'width', int),
        (dict(width=True), 'width', int),
        (dict(width=None), 'width', int),
        (dict(width=0), 'width', PositiveInt),
        (dict(sizes='ab'), 'sizes', Sequence[int]),
        (dict(eps=float('nan')), 'eps', float),
    ],
)
def test_values_of_other_types_raise(content, name, annotation):
    with rejects(f'its config.json has {name}=.*, where a value such as .* is expected'):
        read(**content).get(name, annotation)


def test_aliases_of_a_field_must_agree():
    assert read(hidden=9)['width'] == 9
    assert read(hidden=9, width=9)['width'] == 9
    with rejects('has width=8 and hidden=9, which are the same field'):
        read(hidden=9, width=8)


def test_require_accepts_only_the_listed_values():
    config = read(act='relu')
    config.require('act', 'gelu', 'relu')
    config.check()
    with rejects("has act='relu', and models here compute 'gelu' or 'silu'"):
        config.require('act', 'gelu', 'silu')
    with rejects('has flag=1, and'):
        read(flag=1).require('flag', True)


def test_check_agreement_compares_values_with_the_weights():
    config = read(width=9, sizes=[3, 4])
    config.check_agreement(width=9, sizes=(3, 4), unknown=5)
    config.check()
    with rejects('has width=9, but its weights show 8; give the complete folder'):
        config.check_agreement(width=8)
    read().check_agreement(width=9)  # the config does not state it


def test_inner_configs_are_checked():
    config = read(inside=dict(model_type='b', depth=3, seed=1))
    part = config.part('inside', dict(a=KIND, b=INNER), {})
    with rejects('has inside.depth=3, which no model here computes; give a model with depth=2'):
        config.check()
    assert part['depth'] == 3
    config.check()
    assert read().part('inside', dict(b=INNER), dict(depth=5))['depth'] == 5
    with rejects("has inside.model_type='c', and models here are built with a or b"):
        read(inside=dict(model_type='c')).part('inside', dict(a=KIND, b=INNER), {})
    with rejects('has inside=3, where a config is expected'):
        read(inside=3).part('inside', dict(a=KIND), {})


def test_transformers_kind_lists_each_field_once():
    kind = transformers_kind(dict(width=8, num_labels=2), unused={'of a training': 'rate'})
    assert not {*kind.defaults} & kind.unused_names
    assert {'rate', 'id2label', 'top_k', 'torch_dtype'} <= kind.unused_names


@pytest.mark.parametrize(
    ('content', 'outputs'),
    [
        ({}, [4]),
        (dict(out_indices=[1, 4]), [1, 4]),
        (dict(out_indices=[-4, -1]), [1, 4]),
        (dict(out_features=['stage2', 'stage3']), [2, 3]),
        (dict(out_features=['stage2'], out_indices=[2]), [2]),
    ],
)
def test_outputs_of_a_backbone_are_read(content, outputs):
    config = ForeignConfig(content, transformers_kind(STAGE_FIELDS))
    assert output_stages(config, 4) == outputs
    config.check()


@pytest.mark.parametrize(
    ('content', 'words'),
    [
        (dict(out_indices=[0, 4]), r'out_indices=\[0, 4\], where blocks in ascending order'),
        (dict(out_indices=[4, 1]), 'where blocks in ascending order'),
        (dict(out_indices=[5]), 'where it has 4 blocks'),
        (dict(out_indices='1'), "out_indices='1'"),
        (dict(out_features=['layer2']), r"out_features=\['layer2'\], where its stages are stem"),
        (dict(out_features=['stage2'], out_indices=[3]), 'which are not the same'),
        (dict(stage_names=['a', 'b', 'c', 'd', 'e']), 'stage_names'),
    ],
)
def test_invalid_outputs_of_a_backbone_raise(content, words):
    with rejects(words):
        output_stages(ForeignConfig(content, transformers_kind(STAGE_FIELDS)), 4)
