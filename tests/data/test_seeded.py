"""Samples are functions of their position in a run."""

import pickle
import random

import numpy as np
import pytest
import torch
from mmengine.registry import DATA_SAMPLERS, DATASETS
from torch.utils.data import BatchSampler, Dataset, IterableDataset

from vit_plugin.data.positioned import (
    build_positioned_batch_sampler,
    find_positioned_sampler,
    seeded_loader,
)
from vit_plugin.data.seeded import PositionedIndex, SeededDataset
from vit_plugin.engine import Runner


@DATASETS.register_module()
class DrawingData(Dataset):
    """Ten samples: the index, and a number from each random generator."""

    metainfo = dict(classes=('a',))
    pipeline = 'first'

    def __len__(self) -> int:
        return 10

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.tensor(
            [index, random.random(), np.random.rand(), torch.rand(()).item()], dtype=torch.float64
        )

    def __getitems__(self, indices: list) -> list:
        raise AssertionError('whole batches are not seeded')


@DATA_SAMPLERS.register_module()
class OddFirst(BatchSampler):
    """Batches grouped by properties of the samples, as others do by aspect ratios."""

    def __init__(self, sampler, batch_size: int) -> None:
        super().__init__(sampler, batch_size, drop_last=False)

    def __iter__(self):
        indices = sorted(self.sampler, key=lambda index: index % 2 == 0)
        yield from (
            indices[i : i + self.batch_size] for i in range(0, len(indices), self.batch_size)
        )


def loader(workers: int = 0, batch_size: int = 4, persistent: bool = False, **options):
    """A data loader of DrawingData, as a run builds it."""
    cfg = dict(
        dataset=dict(type='DrawingData'),
        sampler=dict(type='DefaultSampler'),
        batch_size=batch_size,
        num_workers=workers,
        persistent_workers=persistent,
        collate_fn=dict(type='default_collate'),
    )
    return Runner.build_dataloader(
        seeded_loader(cfg | options, seed=3), seed=11, diff_rank_seed=True
    )


def passes(built, first: int = 0, skipped: int = 0) -> torch.Tensor:
    """All samples of three epochs of three batches, from an iteration on.

    Args:
        first: the iteration.
        skipped: iterations of its epoch before it, which are not loaded.
    """
    batches = []
    for epoch in range(first // 3, 3):
        find_positioned_sampler(built).begin(max(first, epoch * 3), skipped, epoch, 3)
        batches += list(built)
        skipped = 0
    return torch.cat(batches)


@pytest.mark.parametrize(
    'batches', [{}, {'batch_sampler': dict(type='OddFirst')}], ids=['sampler', 'batch_sampler']
)
def test_data_do_not_depend_on_workers_or_the_first_iteration(batches):
    expected = passes(loader(**batches))
    assert len(expected.unique()) > 3 * 30  # no number was drawn twice
    for workers, persistent in ((2, True), (1, False)):
        assert torch.equal(passes(loader(workers, persistent=persistent, **batches)), expected)
    # Epochs of 10 samples, in batches of 4, 4 and 2.
    for iteration, num_done in ((2, 8), (3, 10), (5, 18)):
        resumed = passes(loader(**batches), iteration, iteration % 3)
        assert torch.equal(resumed, expected[num_done:])


def test_data_do_not_depend_on_the_number_of_processes(monkeypatch):
    expected = passes(loader(batch_size=5)).view(6, 5, 4)

    def passes_of(rank: int) -> torch.Tensor:
        for module in ('mmengine.dataset.sampler', 'vit_plugin.data.positioned'):
            monkeypatch.setattr(f'{module}.get_dist_info', lambda: (rank, 5))
        return passes(loader(batch_size=1)).view(6, 4)

    assert torch.equal(torch.stack([passes_of(rank) for rank in range(5)], 1), expected)


def test_passes_without_begin_follow_one_another():
    """As in a training loop that is neither MMEngine's nor ours."""
    built = loader(1)
    first, second = (torch.cat(list(built)) for _ in range(2))
    assert torch.equal(first[:, 0], second[:, 0])  # the same order, without set_epoch
    assert (first[:, 1:] != second[:, 1:]).all()


def test_attributes_are_those_of_the_data_set():
    built = loader().dataset
    assert built.metainfo == dict(classes=('a',))
    built.pipeline = 'second'  # hooks change it during a run
    assert built._dataset.pipeline == 'second'
    copy = pickle.loads(pickle.dumps(built))
    assert len(copy) == 10
    assert torch.equal(copy[PositionedIndex(4, 7)], built[PositionedIndex(4, 7)])
    with pytest.raises(AttributeError, match='DrawingData.*none'):
        built.none  # noqa: B018


def test_a_samplers_own_seed_is_kept():
    with_seed, *without_seed = (
        loader(sampler=dict(type='DefaultSampler', **seed))
        for seed in ({'seed': 5}, {}, {'seed': None})
    )
    assert [built.sampler.seed for built in without_seed] == [3, 3]
    for built in (with_seed, *without_seed):
        find_positioned_sampler(built).begin(0, 0, 0, 77)
    assert with_seed.sampler.seed == 5
    assert [built.sampler.seed for built in without_seed] == [77, 77]


def test_batches_of_two_sizes_count_positions_by_the_larger_one():
    """As of MMDetection's ``MultiDataAspectRatioBatchSampler``."""
    sampler = build_positioned_batch_sampler([[5, 6], [7, 8, 9]], True, None, (2, 3))
    assert [[(key.index, key.position) for key in batch] for batch in sampler] == [
        [(5, 0), (6, 1)],
        [(7, 3), (8, 4), (9, 5)],
    ]


class Stream(IterableDataset):
    """Two samples without positions."""

    def __iter__(self):
        yield from (0, 1)


def test_iterable_data_sets_are_not_seeded():
    cfg = seeded_loader(dict(dataset=Stream(), sampler=None, batch_size=2), seed=0)
    built = Runner.build_dataloader(cfg)
    assert isinstance(built.dataset, Stream)
    assert not isinstance(built.dataset, SeededDataset)
    assert find_positioned_sampler(built) is None
    assert list(built) == [[0, 1]]
