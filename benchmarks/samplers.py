"""Measure how fast the samplers begin or resume an epoch of the 14.2 M images of ImageNet-22k.

    python benchmarks samplers

For both samplers, the time until the first index of an epoch is measured, and until that of a run
which resumes at a random position of up to 90 epochs. The memory is the peak of the process while
it iterates over an epoch, above the peak before it. The status is 1 if a limit is exceeded. It
takes 20 s.
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
    """The peak memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def seconds_to_first(sampler: object) -> float:
    start = time.perf_counter()
    next(iter(sampler))
    return time.perf_counter() - start


def measure(images: int = IMAGES, rounds: int = 3) -> dict[str, float]:
    """Measure both samplers.

    Returns:
        ``order``, the seconds until the first index of an epoch; ``resume``, those after a skip;
        both of the slowest round; and ``memory`` in MiB.
    """
    torch.randperm(100)  # what torch allocates once does not count
    before, first, resumed = peak(), [], []
    for _ in range(rounds):
        for sampler_class, length in (
            (DefaultSampler, images),
            (InfiniteSampler, images * EPOCHS),
        ):
            sampler = sampler_class(Images(images), seed=0)
            first.append(seconds_to_first(sampler))
            if sampler_class is DefaultSampler:
                sampler.set_epoch(EPOCHS)
            sampler.skip(random.randrange(length))
            resumed.append(seconds_to_first(sampler))
    sampler = DefaultSampler(Images(images), seed=0)
    for _ in sampler:
        pass
    return dict(order=max(first), resume=max(resumed), memory=peak() - before)


def main() -> None:
    argparse.ArgumentParser(description=__doc__.partition('\n\n')[0]).parse_args()
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
