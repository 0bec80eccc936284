"""The order of ImageNet-22k's 14.2 million images: seconds and memory of a process, at any
position.

    python benchmarks samplers

For both samplers: the first index of an epoch, and of a run that continues at a random position of
the 90th epoch. The memory is the peak of the process while it iterates over an epoch, above that
before it. It takes 20 s.
"""

import argparse
import random
import resource
import sys
import time

import torch

from vit_plugin.data import DefaultSampler, InfiniteSampler

IMAGES, EPOCHS = 14_197_122, 90
MAX_ORDER_SECONDS, MAX_RESUME_SECONDS, MAX_MEBIBYTES = 1.0, 2.0, 150.0


class Images:
    """A data set of this number of samples."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __len__(self) -> int:
        return self._number


def peak() -> float:
    """The largest memory of this process so far, MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def seconds_to_first(sampler: object) -> float:
    start = time.perf_counter()
    next(iter(sampler))
    return time.perf_counter() - start


def measure(images: int = IMAGES, rounds: int = 3) -> dict[str, float]:
    """Seconds until the first index of an epoch and after a jump, the slowest of all, and MiB."""
    torch.randperm(100)
    before, first, after = peak(), [], []
    for _ in range(rounds):
        for kind, length in ((DefaultSampler, images), (InfiniteSampler, images * EPOCHS)):
            sampler = kind(Images(images), seed=0)
            first.append(seconds_to_first(sampler))
            if kind is DefaultSampler:
                sampler.set_epoch(EPOCHS)
            sampler.skip(random.randrange(length))
            after.append(seconds_to_first(sampler))
    sampler = DefaultSampler(Images(images), seed=0)
    for _ in sampler:
        pass
    return dict(order=max(first), resume=max(after), memory=peak() - before)


def main() -> None:
    argparse.ArgumentParser(description=__doc__.partition('\n')[0]).parse_args()
    costs = measure()
    print(
        f'{IMAGES:,} images: order of an epoch {costs["order"]:.2f} s (limit {MAX_ORDER_SECONDS}), '
        f'any position {costs["resume"]:.2f} s (limit {MAX_RESUME_SECONDS}), memory '
        f'{costs["memory"]:.0f} MiB (limit {MAX_MEBIBYTES})'
    )
    sys.exit(
        costs['order'] >= MAX_ORDER_SECONDS
        or costs['resume'] >= MAX_RESUME_SECONDS
        or costs['memory'] >= MAX_MEBIBYTES
    )


if __name__ == '__main__':
    main()
