"""Samples whose random numbers are a function of their position in the run, and of nothing else.

A worker seeds its generators from (seed, position) before each sample. So no state of a generator,
worker or prefetch has to be saved, and the data are the same for any number of workers and, at
equal global batch, of processes.
"""

import logging
import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import torch
from mmengine.dataset import InfiniteSampler
from mmengine.dist import get_dist_info
from mmengine.logging import print_log
from mmengine.registry import DATA_SAMPLERS, DATASETS
from torch.utils.data import DataLoader, IterableDataset

from vit_plugin.data.unreadable import ATTEMPTS, UnreadableFile, UnreadableList, unreadable_file
from vit_plugin.errors import ConfigError

SAMPLE, STEP, VALIDATION = range(3)  # what draws


def seeds(seed: int, kind: int, number: int, part: int = 0) -> list[int]:
    """Four independent seeds below 2**32 for the ``number``-th sample, step or validation."""
    return np.random.SeedSequence((seed, kind, number, part)).generate_state(4).tolist()


def seed_host(words: list[int]) -> None:
    """Seed the CPU generators of Python, NumPy and torch in 10 us.

    ``torch.manual_seed`` alone takes 180 us.
    """
    random.seed(words[0])
    np.random.seed(words[1])
    torch.default_generator.manual_seed(words[2])


class PositionedIndex(NamedTuple):
    """A data loader's request: the index, and the position in the samples of the run."""

    index: Any
    position: int


class Seeded:
    """A map-style data set that seeds the generators before each sample.

    Its attributes are those of the wrapped data set.

    Args:
        dataset: the data set.
        seed: the seed of the run. The attribute ``seed_of_samples`` changes it.
        unreadable: the list of what cannot be read. Another sample takes its place, drawn by the
            position. Without a list, a sample that cannot be read is an error.
    """

    _own = ('_dataset', 'seed_of_samples', '_unreadable')
    # Torch would give whole batches to that of the data set, and nothing would be seeded.
    __getitems__ = None

    def __init__(self, dataset: Any, seed: int, unreadable: UnreadableList | None = None) -> None:
        self._dataset, self.seed_of_samples, self._unreadable = dataset, seed, unreadable

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, PositionedIndex):
            return self._dataset[index]
        index, position = index
        for attempt in range(1, ATTEMPTS + 1):
            words = seeds(self.seed_of_samples, SAMPLE, position, attempt)
            seed_host(words)
            try:
                return self._dataset[index]
            except Exception as error:
                listed = self._unreadable
                found = (
                    unreadable_file(error, self._dataset, index) if isinstance(index, int) else None
                )
                if not listed or not found:
                    raise
                listed.add(UnreadableFile(position, *found))
                index = words[3] % len(self._dataset)
        raise ConfigError(
            f'{ATTEMPTS} samples in a row cannot be read, the last one {found[0]!r} '
            f'({found[1]}); they are listed in {str(listed.path)!r}: look at the path to the data.'
        )

    def __len__(self) -> int:
        return len(self._dataset)

    @property
    def unseeded(self) -> Any:
        """The data set itself."""
        return self._dataset

    def __getattr__(self, name: str) -> Any:
        if name.startswith('__') or name in self._own:  # before the constructor, as pickle asks
            raise AttributeError(name)
        return getattr(self._dataset, name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute of the data set. Framework hooks replace its pipeline during a run."""
        if name in self._own:
            super().__setattr__(name, value)
        else:
            setattr(self._dataset, name, value)


def seeded_part(dataset: Any) -> Any:
    """The seeded data set itself, without the limit of a data loader's ``num_batch_per_epoch``."""
    return dataset if isinstance(dataset, Seeded) else getattr(dataset, '_dataset', dataset)


def seeded_dataset(dataset: Any, seed: int, unreadable: UnreadableList | None = None) -> Any:
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
    return Seeded(built, seed, unreadable)


class PositionedSampler:
    """A sampler or batch sampler that adds each index's position and can begin inside a pass.

    Args:
        source: the sampler or batch sampler. Its attributes can be read here.
        batch_size: samples in an iteration of this process.
        own_seed: whether the config has a seed for the sampler.
    """

    def __init__(self, source: Any, batch_size: int, own_seed: bool) -> None:
        self._source, self.samples, self._own_seed = source, batch_size, own_seed
        self._next = (0, 0)

    def __len__(self) -> int:
        return len(self._source)

    def __getattr__(self, name: str) -> Any:
        if name.startswith('__') or name == '_source':
            raise AttributeError(name)
        return getattr(self._source, name)

    @property
    def _sampler(self) -> Any:
        return self._source

    @property
    def _items(self) -> int:
        """The indices that the source yields in an iteration."""
        return self.samples

    @property
    def endless(self) -> bool:
        """True if a pass never ends."""
        return isinstance(self._sampler, InfiniteSampler) or getattr(
            self._sampler, 'endless', False
        )

    def begin(self, iteration: int, skipped: int, epoch: int, seed: int) -> None:
        """Let the next pass begin at an iteration of the run.

        Args:
            iteration: the iteration that the next batch is for.
            skipped: iterations of the pass before it, which are not loaded.
            epoch: passes before this one. It decides the order, if the sampler has ``set_epoch``.
            seed: the seed of the run.
        """
        self._next = (iteration, skipped)
        if not self._own_seed and hasattr(self._sampler, 'seed'):
            self._sampler.seed = seed
        if hasattr(self._sampler, 'set_epoch'):
            self._sampler.set_epoch(epoch)

    def __iter__(self) -> Iterator:
        iteration, skipped = self._next
        first = iteration - skipped
        # For a loop that does not say where to begin.
        self._next = (first + -(-len(self._source) // self._items), 0)
        rank, world = get_dist_info()
        for number, item in enumerate(self._after(skipped * self._items), iteration * self._items):
            yield self._positioned(item, number, rank, world)

    def _after(self, skipped: int) -> Iterator:
        if hasattr(self._source, 'skip'):
            self._source.skip(skipped)
            return iter(self._source)
        return islice(iter(self._source), skipped, None)

    def _positioned(self, item: Any, number: int, rank: int, world: int) -> Any:
        return PositionedIndex(item, number * world + rank)


class PositionedBatchSampler(PositionedSampler):
    """The same for a batch sampler, whose items are lists of indices."""

    @property
    def _sampler(self) -> Any:
        return getattr(self._source, 'sampler', self._source)

    @property
    def _items(self) -> int:
        return 1

    def _positioned(self, item: list, number: int, rank: int, world: int) -> list[PositionedIndex]:
        return [
            PositionedIndex(index, (number * self.samples + i) * world + rank)
            for i, index in enumerate(item)
        ]


def positioned_sampler(
    source: Any, batch_size: int | None, dataset: Any, seed: int
) -> PositionedSampler:
    """Build a sampler whose indices know their positions."""
    if not isinstance(source, Mapping):
        return PositionedSampler(source, batch_size or 1, True)
    own_seed = source.get('seed') is not None
    source = source if own_seed else dict(source, seed=seed)
    return PositionedSampler(
        DATA_SAMPLERS.build(source, default_args=dict(dataset=dataset)), batch_size or 1, own_seed
    )


def positioned_batch_sampler(
    source: Any, own_seed: bool, sampler: Any, batch_size: int | Sequence[int]
) -> PositionedBatchSampler:
    """Build a batch sampler whose indices know their positions."""
    if isinstance(source, Mapping):
        source = DATA_SAMPLERS.build(
            source, default_args=dict(sampler=sampler, batch_size=batch_size)
        )
    size = getattr(source, 'batch_size', batch_size)  # MMDetection's may have several
    return PositionedBatchSampler(source, size if isinstance(size, int) else max(size), own_seed)


def seeded_loader(cfg: Mapping, seed: int, unreadable: UnreadableList | None = None) -> dict:
    """The config of a data loader whose samples are functions of their position.

    Args:
        cfg: the config of a data loader, as MMEngine's ``Runner.build_dataloader`` takes it.
        seed: the seed of the run, the same in all processes.
        unreadable: see :class:`Seeded`.
    """
    cfg = dict(
        cfg,
        dataset=dict(type=seeded_dataset, dataset=cfg['dataset'], seed=seed, unreadable=unreadable),
    )
    sampler = cfg.get('sampler')
    if sampler is None:  # of an iterable data set
        return cfg
    if cfg.get('batch_sampler') is None:
        return dict(
            cfg,
            sampler=dict(
                type=positioned_sampler, source=sampler, batch_size=cfg.get('batch_size'), seed=seed
            ),
        )
    own_seed = not isinstance(sampler, Mapping) or sampler.get('seed') is not None
    return dict(
        cfg,
        sampler=sampler if own_seed else dict(sampler, seed=seed),
        batch_sampler=dict(
            type=positioned_batch_sampler, source=cfg['batch_sampler'], own_seed=own_seed
        ),
    )


def positioned_sampler_of(loader: DataLoader) -> PositionedSampler | None:
    """The sampler of positions of a data loader, or None."""
    samplers = (loader.batch_sampler, loader.sampler)
    return next((sampler for sampler in samplers if isinstance(sampler, PositionedSampler)), None)
