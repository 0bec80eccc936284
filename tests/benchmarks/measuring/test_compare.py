import dataclasses

import pytest
from rejection import rejects
from tiny_models import TINY

from benchmarks.measuring.compare import Case, compare, format_table

HYBRID = dict(TINY, patch_size=1, resnet=dict(stage_depths=(1, 1)))
CASE = Case(TINY, size=32, batch=2)

pytestmark = pytest.mark.filterwarnings('ignore')  # of the peers, at their import


@pytest.mark.parametrize(
    'change',
    [
        {},
        dict(mode='train'),
        dict(output='featmap', dtype='bfloat16'),
        dict(mode='train', dtype='amp'),
    ],
    ids=str,
)
def test_all_peers_are_measured_on_equal_outputs(change):
    case = dataclasses.replace(CASE, **change)
    rows = {row.implementation: row for row in compare(case, ('timm', 'mmpretrain'), rounds=2)}
    assert list(rows) == ['vit_plugin', 'vit_plugin, no passes', 'timm', 'mmpretrain']
    ours = rows['vit_plugin']
    assert (ours.times_ours, ours.memory_over_ours, ours.difference) == (1, 1, 0)
    for row in rows.values():
        assert row.images_per_s == pytest.approx(2000 / row.latency_ms)
    assert min(row.peak_mib for row in rows.values()) > 0
    # Our last block computes only the class token.
    assert 0 < ours.gflop <= rows['timm'].gflop


def test_peers_without_hybrids_are_left_out():
    messages = []
    rows = compare(
        dataclasses.replace(CASE, model=HYBRID, mode='train'),
        ('timm', 'mmpretrain'),
        rounds=1,
        log=messages.append,
    )
    assert [row.implementation for row in rows] == ['vit_plugin', 'vit_plugin, no passes', 'timm']
    assert len(messages) == 1
    assert 'mmpretrain is left out' in messages[0]


def test_transformers_is_compared():
    pytest.importorskip('transformers')
    rows = compare(CASE, ('transformers',), rounds=1)
    assert rows[2].implementation == 'transformers'


@pytest.mark.nightly
def test_compiled_models_are_compared():
    rows = compare(dataclasses.replace(CASE, compiled=True), (), rounds=1)
    assert len(rows) == 1


@pytest.mark.parametrize('mode', ['forward', 'train'])
def test_different_outputs_raise(mode):
    with rejects('timm does not compute what vit_plugin computes'):
        compare(
            dataclasses.replace(CASE, mode=mode),
            ('timm',),
            options=dict(numerics=dict(base='timm', norm_cfg=dict(eps=0.1))),
        )


def test_differences_within_the_tolerance_are_in_the_table():
    rows = compare(
        CASE,
        ('timm',),
        rounds=1,
        tolerance=1.0,
        options=dict(numerics=dict(base='timm', norm_cfg=dict(eps=0.1))),
    )
    assert 1e-4 < rows[2].difference < 1
    lines = format_table(rows).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert f'{rows[2].difference:.0e}' in lines[3]
