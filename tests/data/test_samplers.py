"""The order of samples, and beginning anywhere in it."""

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
def test_the_order_of_an_epoch_is_mmengines_from_any_place(rank, size, shuffle, round_up):
    options = dict(shuffle=shuffle, seed=5, round_up=round_up)
    ours, theirs = (
        DefaultSampler(range(size), **options),
        mmengine.dataset.DefaultSampler(range(size), **options),
    )
    assert len(ours) == len(theirs)
    for epoch in (0, 3):
        ours.set_epoch(epoch)
        theirs.set_epoch(epoch)
        wanted = list(theirs)
        assert list(ours) == wanted
        for place in range(len(wanted) + 1):
            ours.skip(place)
            assert list(ours) == wanted[place:]
        assert list(ours) == wanted  # a place counts for one pass


def test_an_endless_order_begins_at_any_place(rank):
    def first(number: int, after: int = 0) -> list[int]:
        sampler = DATA_SAMPLERS.build(
            dict(type='vit_plugin.InfiniteSampler', dataset=range(10), seed=5)
        )
        sampler.skip(after)
        return list(itertools.islice(sampler, number))

    wanted = first(40)
    assert wanted[:3] == list(
        itertools.islice(mmengine.dataset.InfiniteSampler(range(10), seed=5), 3)
    )
    for place in range(25):
        assert first(15, place) == wanted[place : place + 15]


def test_the_processes_share_an_endless_order(monkeypatch):
    def of(rank: int, world: int, number: int) -> list[int]:
        monkeypatch.setattr(samplers, 'get_dist_info', lambda: (rank, world))
        return list(itertools.islice(InfiniteSampler(range(10), seed=1), number))

    together = [
        index for row in zip(*(of(rank, 3, 20) for rank in range(3)), strict=True) for index in row
    ]
    assert together == of(0, 1, 60)
    passes = [together[i : i + 10] for i in range(0, 60, 10)]
    assert all(sorted(one) == list(range(10)) for one in passes)
    assert len({tuple(one) for one in passes}) == 6


def test_a_chunk_of_ints_is_no_seam(monkeypatch):
    wanted = list(DefaultSampler(range(10), seed=2))
    monkeypatch.setattr(samplers, 'INDICES_AT_ONCE', 3)
    assert list(DefaultSampler(range(10), seed=2)) == wanted


@pytest.mark.nightly
def test_millions_of_images_take_little_memory():
    """The campaign's figure on a tenth of the images, in a process of its own."""
    code = (
        'import sys; sys.path.insert(0, "."); from benchmarks.samplers import measure; '
        'print(measure(1_400_000, rounds=1)["memory"])'
    )
    done = subprocess.run(
        [sys.executable, '-c', code], capture_output=True, text=True, timeout=120, check=True
    )
    assert float(done.stdout.splitlines()[-1]) < 30


@pytest.mark.parametrize('kind', [DefaultSampler, InfiniteSampler])
def test_without_samples_there_is_no_order(kind):
    with rejects(f'{kind.__name__}: the dataset has no samples'):
        kind([])
