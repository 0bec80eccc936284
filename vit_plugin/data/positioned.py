"""Samplers that add the position in the run to each index, and can begin inside a pass.

A pass is one iteration over the sampler: an epoch, or all of an endless run. The position decides
the random numbers of a sample, see :mod:`.seeded`.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from mmengine.dataset import InfiniteSampler
from mmengine.dist import get_dist_info
from mmengine.registry import DATA_SAMPLERS
from torch.utils.data import DataLoader

from .seeded import PositionedIndex, build_seeded_dataset
from .unreadable import UnreadableList


class PositionedSampler:
    """A sampler or batch sampler that adds each index's position and can begin inside a pass.

    Args:
        source: the sampler or batch sampler. Its attributes can be read here.
        batch_size: samples of this process in an iteration of the training loop.
        own_seed: whether the config has a seed for the sampler, which the run's does not replace.
    """

    def __init__(self, source: Any, batch_size: int, own_seed: bool) -> None:
        self._source, self.samples_per_iteration, self._own_seed = source, batch_size, own_seed
        self._next = (0, 0)  # `iteration` and `skipped` of the next pass, see begin

    def __len__(self) -> int:
        return len(self._source)

    def __getattr__(self, name: str) -> Any:
        # pickle looks up such names before the constructor has run.
        if name.startswith('__') or name == '_source':
            raise AttributeError(name)
        return getattr(self._source, name)

    @property
    def _sampler(self) -> Any:
        return self._source

    @property
    def _items(self) -> int:
        """How many items the source yields in an iteration: indices here, batches in a subclass."""
        return self.samples_per_iteration

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
        # The beginning of the pass after this one, unless the loop calls `begin`.
        self._next = (first + math.ceil(len(self._source) / self._items), 0)
        rank, world = get_dist_info()
        for number, item in enumerate(
            self._iterate_from(skipped * self._items), iteration * self._items
        ):
            yield self._add_position(item, number, rank, world)

    def _iterate_from(self, skipped: int) -> Iterator:
        """The items of a pass after the first ``skipped`` ones."""
        # The samplers of this package can begin anywhere. Others draw the skipped items, too.
        if hasattr(self._source, 'skip'):
            self._source.skip(skipped)
            return iter(self._source)
        return islice(iter(self._source), skipped, None)

    def _add_position(self, item: Any, number: int, rank: int, world: int) -> Any:
        """Add its position in the run to an item, the ``number``-th one of this process."""
        return PositionedIndex(item, number * world + rank)


class PositionedBatchSampler(PositionedSampler):
    """A :class:`PositionedSampler` for a batch sampler, whose items are lists of indices."""

    @property
    def _sampler(self) -> Any:
        return getattr(self._source, 'sampler', self._source)

    @property
    def _items(self) -> int:
        return 1

    def _add_position(
        self, item: list, number: int, rank: int, world: int
    ) -> list[PositionedIndex]:
        return [
            PositionedIndex(index, (number * self.samples_per_iteration + i) * world + rank)
            for i, index in enumerate(item)
        ]


def build_positioned_sampler(
    source: Any, batch_size: int | None, dataset: Any, seed: int
) -> PositionedSampler:
    """Build a sampler that adds positions to its indices."""
    if not isinstance(source, Mapping):
        return PositionedSampler(source, batch_size or 1, own_seed=True)
    own_seed = source.get('seed') is not None
    source = source if own_seed else dict(source, seed=seed)
    return PositionedSampler(
        DATA_SAMPLERS.build(source, default_args=dict(dataset=dataset)), batch_size or 1, own_seed
    )


def build_positioned_batch_sampler(
    source: Any, own_seed: bool, sampler: Any, batch_size: int | Sequence[int]
) -> PositionedBatchSampler:
    """Build a batch sampler that adds positions to its indices."""
    if isinstance(source, Mapping):
        source = DATA_SAMPLERS.build(
            source, default_args=dict(sampler=sampler, batch_size=batch_size)
        )
    # A data loader of MMDetection may have several batch sizes.
    size = getattr(source, 'batch_size', batch_size)
    return PositionedBatchSampler(source, size if isinstance(size, int) else max(size), own_seed)


def seeded_loader(cfg: Mapping, seed: int, unreadable: UnreadableList | None = None) -> dict:
    """The config of a data loader whose samples are functions of their position.

    Args:
        cfg: the config of a data loader, as MMEngine's ``Runner.build_dataloader`` takes it.
        seed: the seed of the run, the same in all processes.
        unreadable: see :class:`SeededDataset`.
    """
    cfg = dict(
        cfg,
        dataset=dict(
            type=build_seeded_dataset, dataset=cfg['dataset'], seed=seed, unreadable=unreadable
        ),
    )
    sampler = cfg.get('sampler')
    if sampler is None:  # an iterable data set has no sampler
        return cfg
    if cfg.get('batch_sampler') is None:
        return dict(
            cfg,
            sampler=dict(
                type=build_positioned_sampler,
                source=sampler,
                batch_size=cfg.get('batch_size'),
                seed=seed,
            ),
        )
    own_seed = not isinstance(sampler, Mapping) or sampler.get('seed') is not None
    return dict(
        cfg,
        sampler=sampler if own_seed else dict(sampler, seed=seed),
        batch_sampler=dict(
            type=build_positioned_batch_sampler, source=cfg['batch_sampler'], own_seed=own_seed
        ),
    )


def find_positioned_sampler(loader: DataLoader) -> PositionedSampler | None:
    """The sampler of positions of a data loader, or None."""
    samplers = (loader.batch_sampler, loader.sampler)
    return next((sampler for sampler in samplers if isinstance(sampler, PositionedSampler)), None)
