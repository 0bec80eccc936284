"""Sample orders that can begin anywhere: arithmetic on a permutation, never a list of Python ints.

The order of ImageNet-22k (14.2 million images) takes 0.6 s and 118 MiB
(`benchmarks/samplers.py`), and beginning at any position takes no longer.
"""

import math
from collections.abc import Iterator, Sized

import torch
from mmengine.dist import get_dist_info, sync_random_seed
from torch import Tensor
from torch.utils.data import Sampler

from vit_plugin.arguments.fields import Seed
from vit_plugin.errors import ConfigError
from vit_plugin.registry import DATA_SAMPLERS

INDICES_AT_ONCE = 1 << 14  # indices that become Python ints at a time


def epoch_order(size: int, shuffle: bool, seed: int) -> Tensor:
    """The indices (size,) of a pass. MMEngine's ``DefaultSampler`` has the same order."""
    dtype = torch.int32 if size < 2**31 else torch.int64
    if not shuffle:
        return torch.arange(size, dtype=dtype)
    return torch.randperm(size, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def strided_share(indices: Tensor, first: int, step: int) -> Tensor:
    """Every ``step``-th index from ``first`` on, without keeping the others in memory."""
    return indices[first::step].clone() if first or step > 1 else indices


def as_ints(indices: Tensor) -> Iterator[int]:
    """Yield the indices as Python ints, in chunks, so that the whole list never exists."""
    for chunk in indices.split(INDICES_AT_ONCE):
        yield from chunk.tolist()


class _SkippingSampler(Sampler):
    """A share of an order of a data set, whose next pass may begin at any sample."""

    def __init__(self, dataset: Sized, shuffle: bool = True, seed: Seed | None = None) -> None:
        self.dataset, self.shuffle, self.size = dataset, shuffle, len(dataset)
        if not self.size:
            raise ConfigError(
                f'{type(self).__name__}: the dataset has no samples; correct its data_root, '
                'ann_file or indices.'
            )
        self.rank, self.world_size = get_dist_info()
        self.seed = sync_random_seed() if seed is None else seed
        self._skipped = 0

    def skip(self, num_samples: int) -> None:
        """Let the next pass begin after ``num_samples`` samples of this process.

        If passes have no end, these are counted from the start of the run.
        """
        self._skipped = num_samples


@DATA_SAMPLERS.register_module()
class DefaultSampler(_SkippingSampler):
    """MMEngine's ``DefaultSampler`` in the same order, without a list of all indices.

    Args:
        dataset: what is sampled.
        shuffle: whether each epoch has another order.
        seed: the seed of the orders, the same in all processes. None takes the run's.
        round_up: whether the first samples are repeated at the end, so that all processes have the
            same number.
    """

    endless = False

    def __init__(
        self, dataset: Sized, shuffle: bool = True, seed: Seed | None = None, round_up: bool = True
    ) -> None:
        super().__init__(dataset, shuffle, seed)
        self.round_up, self.epoch = round_up, 0
        samples = self.size if round_up else self.size - self.rank
        self.num_samples = math.ceil(samples / self.world_size)
        self.total_size = self.num_samples * self.world_size if round_up else self.size

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        skipped, self._skipped = self._skipped, 0
        indices = epoch_order(self.size, self.shuffle, self.seed + self.epoch)
        begin = self.rank + skipped * self.world_size
        share = strided_share(indices, begin, self.world_size)
        # Samples are repeated at the end, from the start of the order, and several times if it is
        # shorter than the number of processes.
        after = begin + len(share) * self.world_size
        repeated = indices[
            torch.arange(after, max(after, self.total_size), self.world_size) % len(indices)
        ]
        del indices  # this process keeps only its share
        yield from as_ints(share)
        yield from as_ints(repeated)

    def __len__(self) -> int:
        """The number of samples of this process in an epoch."""
        return self.num_samples


@DATA_SAMPLERS.register_module()
class InfiniteSampler(_SkippingSampler):
    """MMEngine's ``InfiniteSampler``, able to begin in any pass: each follows from (seed, pass).

    The processes share one endless order: all indices in one order, then all in another.

    Args:
        dataset: what is sampled.
        shuffle: whether each pass has another order.
        seed: the seed of the orders, the same in all processes. None takes the run's.
    """

    endless = True

    def __iter__(self) -> Iterator[int]:
        # The position in the order that the processes share.
        position = self.rank + self._skipped * self.world_size
        while True:
            number, first = divmod(position, self.size)
            indices = strided_share(
                epoch_order(self.size, self.shuffle, self.seed + number), first, self.world_size
            )
            position += len(indices) * self.world_size
            yield from as_ints(indices)

    def __len__(self) -> int:
        """The number of samples in a pass of all processes."""
        return self.size
