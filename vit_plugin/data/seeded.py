"""Samples whose random numbers depend only on their position in the run.

A worker seeds its generators from (seed, position) before each sample. So no state of a generator,
worker or prefetch has to be saved, and the data are the same for any number of workers and, at
equal global batch, of processes.
"""

import logging
import random
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from mmengine.logging import print_log
from mmengine.registry import DATASETS
from torch.utils.data import IterableDataset

from vit_plugin.data.unreadable import ATTEMPTS, UnreadableFile, UnreadableList, unreadable_file
from vit_plugin.errors import ConfigError

SAMPLE, STEP, VALIDATION = range(3)  # purposes of random numbers, see seeds


def seeds(seed: int, purpose: int, number: int, part: int = 0) -> list[int]:
    """Four independent seeds below 2**32.

    Args:
        seed: the seed of the run.
        purpose: :data:`SAMPLE`, :data:`STEP` or :data:`VALIDATION`.
        number: which sample, step or validation of the run.
        part: distinguishes several uses of the same number.
    """
    return np.random.SeedSequence((seed, purpose, number, part)).generate_state(4).tolist()


def seed_host(four_seeds: list[int]) -> None:
    """Seed the CPU generators of Python, NumPy and torch with the first three seeds, in 10 us.

    The fourth seed is left to the caller. ``torch.manual_seed`` alone takes 180 us.

    Args:
        four_seeds: see :func:`seeds`.
    """
    random.seed(four_seeds[0])
    np.random.seed(four_seeds[1])
    torch.default_generator.manual_seed(four_seeds[2])


class PositionedIndex(NamedTuple):
    """A data loader's request: the index, and the position in the samples of the run."""

    index: Any
    position: int


class SeededDataset:
    """A map-style data set that seeds the generators before each sample.

    Its attributes are those of the wrapped data set.

    Args:
        dataset: the data set.
        seed: the seed of the run. The attribute ``seed_of_samples`` changes it.
        unreadable: the list of unreadable samples. Each is replaced by another sample, drawn by the
            position. Without a list, an unreadable sample is an error.
    """

    _own_names = ('_dataset', 'seed_of_samples', '_unreadable')
    # torch would call the data set's own __getitems__ with whole batches, and nothing would be
    # seeded.
    __getitems__ = None

    def __init__(self, dataset: Any, seed: int, unreadable: UnreadableList | None = None) -> None:
        self._dataset, self.seed_of_samples, self._unreadable = dataset, seed, unreadable

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, PositionedIndex):
            return self._dataset[index]
        index, position = index
        for attempt in range(1, ATTEMPTS + 1):
            four_seeds = seeds(self.seed_of_samples, SAMPLE, position, attempt)
            seed_host(four_seeds)
            try:
                return self._dataset[index]
            except Exception as error:
                unreadable_list = self._unreadable
                unreadable = (
                    unreadable_file(error, self._dataset, index) if isinstance(index, int) else None
                )
                if not unreadable_list or not unreadable:
                    raise
                unreadable_list.add(UnreadableFile(position, *unreadable))
                index = four_seeds[3] % len(self._dataset)
        path, reason = unreadable
        raise ConfigError(
            f'{ATTEMPTS} samples in a row cannot be read, the last one {path!r} ({reason}); they '
            f'are listed in {str(unreadable_list.path)!r}: look at the path to the data.'
        )

    def __len__(self) -> int:
        return len(self._dataset)

    @property
    def unseeded(self) -> Any:
        """The data set itself."""
        return self._dataset

    def __getattr__(self, name: str) -> Any:
        # pickle looks up such names before the constructor has run.
        if name.startswith('__') or name in self._own_names:
            raise AttributeError(name)
        return getattr(self._dataset, name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute of the data set. Framework hooks replace its pipeline during a run."""
        if name in self._own_names:
            super().__setattr__(name, value)
        else:
            setattr(self._dataset, name, value)


def find_seeded_dataset(dataset: Any) -> Any:
    """The seeded data set in MMEngine's wrapper for ``num_batch_per_epoch``, or itself."""
    return dataset if isinstance(dataset, SeededDataset) else getattr(dataset, '_dataset', dataset)


def build_seeded_dataset(dataset: Any, seed: int, unreadable: UnreadableList | None = None) -> Any:
    """Build a data set with seeded samples. An iterable one has no positions and is unchanged."""
    built = DATASETS.build(dataset) if isinstance(dataset, Mapping) else dataset
    if isinstance(built, IterableDataset):
        print_log(
            f'{type(built).__name__} cannot begin at a position: a run that is resumed sees its '
            'data from the start again.',
            'current',
            logging.WARNING,
        )
        return built
    return SeededDataset(built, seed, unreadable)
