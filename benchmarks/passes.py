"""Measure the speed-up of the passes for CPUs on each instruction set (docs/speed.md).

    python benchmarks passes [--sets AVX2 AVX-512 AMX] [--rounds 15]

A pass, see :mod:`vit_plugin.passes`, rewrites a model to be faster. Each instruction set is
measured in a process in which oneDNN, MKL and torch use no later one. The plain model and the one
with the pass run in turn, in one thread, and processor time is measured. The median of the ratios
is printed: above 1 the pass is faster.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time

import torch
from torch import nn

from vit_plugin.models import VisionTransformer
from vit_plugin.passes import channels_last, onednn

# The names of ATen, MKL and oneDNN for each set, and the variables that select it.
SETS = {
    'AVX2': ('avx2', 'AVX2', 'AVX2'),
    'AVX-512': ('avx512', 'AVX512', 'AVX512_CORE_BF16'),
    'AMX': ('avx512', 'AVX512', 'ALL'),
}
VARIABLES = 'ATEN_CPU_CAPABILITY', 'MKL_ENABLE_INSTRUCTIONS', 'ONEDNN_MAX_CPU_ISA'
WARM_UP = 2  # rounds that do not count
PASSES = dict(onednn=onednn.convert_mlps, channels_last=channels_last.convert_stems)
# Pass, model, batch size and dtype.
CASES = [
    ('onednn', 'S/16', 4, 'float32'),
    ('onednn', 'B/16', 1, 'float32'),
    ('onednn', 'B/16', 4, 'float32'),
    ('onednn', 'B/16', 1, 'bfloat16'),
    ('channels_last', 'R26+S/32', 4, 'float32'),
    ('channels_last', 'R50+B/16', 1, 'float32'),
    ('channels_last', 'R26+S/32', 4, 'bfloat16'),
]


def ratio(plain: nn.Module, passed: nn.Module, batch: torch.Tensor, rounds: int) -> float:
    """The median ratio of the time of the plain model to that of the model with the pass."""
    with torch.inference_mode():
        times = [(seconds(plain, batch), seconds(passed, batch)) for _ in range(WARM_UP + rounds)]
    return statistics.median(before / after for before, after in times[WARM_UP:])


def seconds(model: nn.Module, batch: torch.Tensor) -> float:
    """Processor seconds of a forward."""
    start = time.process_time()
    model(batch)
    return time.process_time() - start


def measure(rounds: int) -> None:
    """Print the ratio of each case in this process."""
    torch.set_num_threads(1)
    for name, arch, images, dtype in CASES:
        plain, passed = (VisionTransformer(arch).eval().to(getattr(torch, dtype)) for _ in range(2))
        PASSES[name](passed)
        batch = torch.rand(images, 3, 224, 224, dtype=getattr(torch, dtype))
        try:
            result = f'{ratio(plain, passed, batch, rounds):.3f}'
        except RuntimeError as error:  # oneDNN has no bfloat16 for AVX2
            result = str(error).partition('.')[0]
        print(f'  {name:13} {arch:8} batch {images} {dtype:8} {result}', flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--sets', nargs='+', choices=SETS, default=list(SETS))
    parser.add_argument('--rounds', type=int, default=15)
    parser.add_argument('--here', action='store_true', help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.here:
        measure(args.rounds)
        return
    for name in args.sets:
        print(name, flush=True)
        subprocess.run(
            [sys.executable, __file__, '--here', '--rounds', str(args.rounds)],
            check=True,
            env=dict(os.environ, **dict(zip(VARIABLES, SETS[name], strict=True))),
        )


if __name__ == '__main__':
    main()
