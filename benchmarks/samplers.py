"""The order of ImageNet-22k's 14.2 million images: seconds and memory of a process, at any
position.

    python benchmarks samplers

For both samplers: the first index of an epoch, and of a run that goes on at a random position of
the 90th epoch. The memory is what the process holds at most while it iterates over an epoch, above
what it held before. It takes 20 s.
"""

import argparse
import random
import resource
import sys
import time

import torch

from vit_plugin.data import DefaultSampler, InfiniteSampler

IMAGES, EPOCHS = 14_197_122, 90
ORDER_SECONDS, RESUME_SECONDS, MEBIBYTES = 1.0, 2.0, 150.0


class Images:
    """So many samples."""

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
    found = measure()
    print(
        f'{IMAGES:,} images: order of an epoch {found["order"]:.2f} s (limit {ORDER_SECONDS}), '
        f'any position {found["resume"]:.2f} s (limit {RESUME_SECONDS}), memory '
        f'{found["memory"]:.0f} MiB (limit {MEBIBYTES})'
    )
    sys.exit(
        found['order'] >= ORDER_SECONDS
        or found['resume'] >= RESUME_SECONDS
        or found['memory'] >= MEBIBYTES
    )


if __name__ == '__main__':
    main()
