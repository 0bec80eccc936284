"""Measure a training step with and without the allocator settings of `vit-plugin train`.

    python benchmarks allocator [--arch r26+s/32] [--batch-size 8] [--steps 8] [--rounds 5]

The settings make glibc keep freed memory for the next step in place of returning it to the system,
which costs page faults. Compared are processes without them (plain), with the call of
`vit_plugin.commands.allocator` (kept), and with the equivalent environment variables (variables),
interleaved. Prints the median CPU time and page faults of a step, and the peak memory. Five rounds
take six minutes on one core.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys

import torch

from vit_plugin import create_model
from vit_plugin.commands.allocator import keep_memory

# No block is mapped on its own, and freed memory is not returned; in bytes.
GLIBC_VARIABLES = dict(
    MALLOC_MMAP_THRESHOLD_='4294967296',
    MALLOC_TRIM_THRESHOLD_='8589934592',
    MALLOC_TOP_PAD_='268435456',
)
WARM_UP_STEPS = 2  # not counted
VARIANTS = ('plain', 'kept', 'variables')


def measure(arch: str, batch_size: int, steps: int) -> list[list[float]]:
    """CPU seconds and page faults of each step after :data:`WARM_UP_STEPS`."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = create_model(arch, 10, img_size=224)
    optimizer = torch.optim.AdamW(model.parameters())
    images, labels = torch.randn(batch_size, 3, 224, 224), torch.randint(10, (batch_size,))
    costs = []
    for _ in range(steps + WARM_UP_STEPS):
        before = resource.getrusage(resource.RUSAGE_SELF)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
        after = resource.getrusage(resource.RUSAGE_SELF)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        costs.append([seconds, after.ru_minflt - before.ru_minflt])
    return costs[WARM_UP_STEPS:]


def print_costs(variant: str, arch: str, batch_size: int, steps: int) -> None:
    """Measure a variant in this process, and print its costs as JSON."""
    if variant == 'kept':
        keep_memory()
    costs = measure(arch, batch_size, steps)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(dict(steps=costs, peak=peak)))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--arch', default='r26+s/32')
    parser.add_argument('--batch-size', type=int, default=8)
    parser.add_argument('--steps', type=int, default=8)
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--variant', choices=VARIANTS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.variant:  # set in the processes that this program starts
        print_costs(args.variant, args.arch, args.batch_size, args.steps)
        return
    runs_of_variant: dict[str, list] = {variant: [] for variant in VARIANTS}
    for _ in range(args.rounds):
        for variant, runs in runs_of_variant.items():
            done = subprocess.run(
                [sys.executable, __file__, *sys.argv[1:], '--variant', variant],
                stdout=subprocess.PIPE,
                env={**os.environ, **(GLIBC_VARIABLES if variant == 'variables' else {})},
                check=True,
            )
            runs.append(json.loads(done.stdout.splitlines()[-1]))
    for variant, runs in runs_of_variant.items():
        seconds, faults = zip(*(step for run in runs for step in run['steps']), strict=True)
        print(
            f'{variant:<10} {statistics.median(seconds):.2f} s  '
            f'{statistics.median(faults):>7.0f} page faults  '
            f'{statistics.median(run["peak"] for run in runs):.0f} MB'
        )


if __name__ == '__main__':
    main()
