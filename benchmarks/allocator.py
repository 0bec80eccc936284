"""A training step with and without the allocator settings of `vit-plugin train`, which keep memory.

    python benchmarks allocator [--arch r26+s/32] [--batch-size 8] [--steps 8] [--rounds 5]

Processes take turns: plain, with `vit_plugin.commands.allocator`, and with the environment
variables of glibc. Prints the median processor time and page faults of a step, and the peak memory.
Five rounds take six minutes on one core.
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

VARIABLES = dict(
    MALLOC_MMAP_THRESHOLD_='4294967296',
    MALLOC_TRIM_THRESHOLD_='8589934592',
    MALLOC_TOP_PAD_='268435456',
)
WARM_UP_STEPS = 2  # not counted
WAYS = ('plain', 'kept', 'variables')


def measure(arch: str, batch_size: int, steps: int) -> list[list[float]]:
    """Processor seconds and page faults of each step after :data:`WARM_UP_STEPS`."""
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


def measure_way(way: str, arch: str, batch_size: int, steps: int) -> None:
    if way == 'kept':
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
    parser.add_argument('--way', choices=WAYS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.way:
        return measure_way(args.way, args.arch, args.batch_size, args.steps)
    runs_of_way: dict[str, list] = {way: [] for way in WAYS}
    for _ in range(args.rounds):
        for way, runs in runs_of_way.items():
            done = subprocess.run(
                [sys.executable, __file__, *sys.argv[1:], '--way', way],
                stdout=subprocess.PIPE,
                env={**os.environ, **(VARIABLES if way == 'variables' else {})},
                check=True,
            )
            runs.append(json.loads(done.stdout.splitlines()[-1]))
    for way, runs in runs_of_way.items():
        seconds, faults = zip(*(step for run in runs for step in run['steps']), strict=True)
        print(
            f'{way:<10} {statistics.median(seconds):.2f} s  '
            f'{statistics.median(faults):>7.0f} page faults  '
            f'{statistics.median(run["peak"] for run in runs):.0f} MB'
        )
    return None


if __name__ == '__main__':
    main()
