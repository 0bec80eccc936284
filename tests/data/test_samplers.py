"""The order of samples, and starting at any position of it."""

import itertools
import subprocess
import sys

import mmengine.dataset
import pytest
from mmengine.registry import DATA_SAMPLERS
from rejection import rejects

from vit_plugin.data import samplers
from vit_plugin.data.samplers import DefaultSampler, InfiniteSampler


@pytest.fixture(
    params=[(0, 1), (0, 3), (1, 3), (2, 3)], ids=lambda pair: f'rank{pair[0]}of{pair[1]}'
)
def rank(request, monkeypatch) -> tuple[int, int]:
    for module in (samplers, sys.modules['mmengine.dataset.sampler']):
        monkeypatch.setattr(module, 'get_dist_info', lambda: request.param)
    return request.param


@pytest.mark.parametrize('size', [1, 2, 10, 12])
@pytest.mark.parametrize('shuffle', [True, False])
@pytest.mark.parametrize('round_up', [True, False])
def test_epochs_have_mmengines_order_from_any_position(rank, size, shuffle, round_up):
    options = dict(shuffle=shuffle, seed=5, round_up=round_up)
    ours, theirs = (
        DefaultSampler(range(size), **options),
        mmengine.dataset.DefaultSampler(range(size), **options),
    )
    assert len(ours) == len(theirs)
    for epoch in (0, 3):
        ours.set_epoch(epoch)
        theirs.set_epoch(epoch)
        expected = list(theirs)
        assert list(ours) == expected
        for position in range(len(expected) + 1):
            ours.skip(position)
            assert list(ours) == expected[position:]
        assert list(ours) == expected  # skip counts for one pass


def test_the_infinite_order_starts_at_any_position(rank):
    def first(number: int, skipped: int = 0) -> list[int]:
        sampler = DATA_SAMPLERS.build(
            dict(type='vit_plugin.InfiniteSampler', dataset=range(10), seed=5)
        )
        sampler.skip(skipped)
        return list(itertools.islice(sampler, number))

    expected = first(40)
    assert expected[:3] == list(
        itertools.islice(mmengine.dataset.InfiniteSampler(range(10), seed=5), 3)
    )
    for position in range(25):
        assert first(15, position) == expected[position : position + 15]


def test_processes_share_the_infinite_order(monkeypatch):
    def order_of(rank: int, world: int, number: int) -> list[int]:
        monkeypatch.setattr(samplers, 'get_dist_info', lambda: (rank, world))
        return list(itertools.islice(InfiniteSampler(range(10), seed=1), number))

    orders = [order_of(rank, 3, 20) for rank in range(3)]
    together = [index for indices in zip(*orders, strict=True) for index in indices]
    assert together == order_of(0, 1, 60)
    passes = [together[i : i + 10] for i in range(0, 60, 10)]
    assert all(sorted(indices) == list(range(10)) for indices in passes)
    assert len({tuple(indices) for indices in passes}) == 6


def test_converting_indices_in_chunks_keeps_the_order(monkeypatch):
    expected = list(DefaultSampler(range(10), seed=2))
    monkeypatch.setattr(samplers, 'INDICES_AT_ONCE', 3)
    assert list(DefaultSampler(range(10), seed=2)) == expected


@pytest.mark.nightly
def test_millions_of_images_take_little_memory():
    """The measurement of benchmarks/samplers.py on a tenth of its images."""
    code = (
        'import sys; sys.path.insert(0, "."); from benchmarks.samplers import measure; '
        'print(measure(1_400_000, rounds=1)["memory"])'
    )
    done = subprocess.run(
        [sys.executable, '-c', code], capture_output=True, text=True, timeout=120, check=True
    )
    assert float(done.stdout.splitlines()[-1]) < 30  # MiB


@pytest.mark.parametrize('sampler', [DefaultSampler, InfiniteSampler])
def test_empty_data_sets_raise(sampler):
    with rejects(f'{sampler.__name__}: the dataset has no samples'):
        sampler([])
