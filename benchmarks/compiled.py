"""Compare ways to compile a training step on a GPU, with timm's too: time, MFU, memory, kernels.

    python benchmarks compiled [--archs R26+S/32 R50+B/16 B/16] [--forms NAME ...] [--batch 256]
        [--jobs 8] [--kernels] [--tiny]

A form is eager, compiled block by block or as a whole, ours or timm's. Steps run in bfloat16 by
autocast with fused AdamW on images of 224 px, interleaved. First, a process for each form compiles
it, ``--jobs`` at once, so that inductor's cache holds the code to be measured. ``--kernels`` prints
the time of the kernels by kind, and the longest. ``--tiny`` tries all of it on a CPU and compiles
nothing.
"""

import argparse
import math
import os
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from statistics import median
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

from benchmarks.measuring.calls import count_flops, interleaved, peak_memory
from benchmarks.measuring.compare import Case, step_of
from benchmarks.measuring.implementations import build_ours, build_peer
from vit_plugin.engine.compile import compile_blocks
from vit_plugin.engine.throughput import peak_flops

# A kind of kernel -> parts of its kernels' names; the first match counts.
KERNEL_KINDS = {
    'compiled': ('triton',),
    'attention': ('flash', 'fmha', 'sdp'),
    'convolutions': ('conv', 'wgrad', 'dgrad', 'cudnn', 'nchw', 'nhwc'),
    'matmuls': ('gemm', 'nvjet', 'cutlass'),
    'optimizer': ('multi_tensor', 'adam'),
}
NUM_LISTED = 25  # the kernels with the most time


class ChannelsLast(nn.Module):
    """A model with weights and images in the memory format channels_last."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model.to(memory_format=torch.channels_last)

    def forward(self, images: Tensor) -> Tensor:
        return self.model(images.contiguous(memory_format=torch.channels_last))


def group_norm(x: Tensor, groups: int, weight: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
    """Equivalent to ``F.group_norm``, with statistics of each channel that are combined to those of
    its group: in channels_last, such a reduction reads memory contiguously.

    Args:
        x: a feature map (N, C, H, W).
        groups: number of groups.
        weight: (C,).
        bias: (C,).
        eps: as in ``F.group_norm``.
    """
    x = x.float()
    var, mean = (
        part.unflatten(1, (groups, -1)) for part in torch.var_mean(x, (2, 3), correction=0)
    )
    center = mean.mean(2, keepdim=True)
    # A group's variance is the mean of its channels' variances plus the variance of their means.
    scale = torch.rsqrt((var + (mean - center).square()).mean(2, keepdim=True) + eps)
    scale = scale.expand_as(mean).flatten(1) * weight
    shift = bias - center.expand_as(mean).flatten(1) * scale
    return x * scale[..., None, None] + shift[..., None, None]


def blocks(model: nn.Module, tiny: bool) -> nn.Module:
    compile_blocks(model, **backend(tiny))
    return model


def whole(model: nn.Module, tiny: bool) -> nn.Module:
    return torch.compile(model, **backend(tiny))


def backend(tiny: bool) -> dict[str, Any]:
    return dict(backend='eager') if tiny else {}


def eager(model: nn.Module, tiny: bool) -> nn.Module:
    return model


# Name -> the transform of the model, whether it is timm's model, and whether it is channels-last.
FORMS: dict[str, tuple[Callable[[nn.Module, bool], nn.Module], bool, bool]] = {
    'eager': (eager, False, False),
    'blocks': (blocks, False, False),
    'blocks, channels-last': (blocks, False, True),
    'blocks, channels-last, norm by channels': (blocks, False, True),
    'whole': (whole, False, False),
    'timm': (eager, True, False),
    'timm, whole': (whole, True, False),
}
DEFAULT = ('blocks', 'blocks, channels-last', 'whole', 'timm, whole')


def build(case: Case, form: str, tiny: bool) -> nn.Module:
    make, is_timm, channels_last = FORMS[form]
    torch.manual_seed(0)
    model: nn.Module = build_ours(case.model, case.size, case.output)
    if is_timm:
        model = build_peer('timm', case.model, case.size, case.output, model)
    model = make(case.cast(model).train(), tiny)
    return ChannelsLast(model) if channels_last else model


def compiled_step(case: Case, form: str, tiny: bool) -> Callable[[], None]:
    """A training step of a form, called once, so that it is compiled."""
    images = [case.cast(torch.randn(case.batch, 3, case.size, case.size)) for _ in range(2)]
    step = step_of(case, build(case, form, tiny), images)
    # Only the first call sees the replacement: it is traced into the compiled code.
    patched = mock.patch.object(F, 'group_norm', group_norm)
    with patched if 'norm by channels' in form else nullcontext():
        step()
    return step


def compile_apart(arch: str, form: str, batch: int) -> None:
    """Compile a form in a process of its own, which leaves its code in inductor's cache."""
    command = [sys.executable, __file__, '--only-compile', '--archs', arch, '--forms', form]
    subprocess.run([*command, '--batch', str(batch)], stderr=subprocess.DEVNULL)


def kernel_report(step: Callable[[], None]) -> str:
    """Milliseconds of a step's kernels by kind, and the longest."""
    with profile(activities=[ProfilerActivity.CUDA]) as record:
        step()
        torch.cuda.synchronize()
    time_ms, calls = Counter[str](), Counter[str]()
    for event in record.events():
        time_ms[event.name] += event.device_time / 1000
        calls[event.name] += 1
    kinds = Counter[str]()
    for name, ms in time_ms.items():
        fits = (
            kind
            for kind, parts in KERNEL_KINDS.items()
            if any(part in name.lower() for part in parts)
        )
        kinds[next(fits, 'others')] += ms
    total = ', '.join(f'{kind} {ms:.1f}' for kind, ms in kinds.most_common())
    longest = (
        f'{ms:8.2f} ms {calls[name]:4} x {name[:100]}'
        for name, ms in time_ms.most_common(NUM_LISTED)
    )
    return '\n'.join((total, *longest))


def measure(case: Case, args: argparse.Namespace) -> None:
    """Print a row of the table for each form of a model, and their kernels with ``--kernels``."""
    torch.compiler.reset()
    steps = {}
    for form in args.forms:
        steps[form] = compiled_step(case, form, args.tiny)
    for step in steps.values():  # warm up
        step()
    plain = build_ours(case.model, case.size, case.output)
    images = case.cast(torch.randn(case.batch, 3, case.size, case.size))
    flops = count_flops(step_of(case, case.cast(plain).train(), [images]))
    peak = peak_flops() or math.nan
    device = torch.device(case.device)
    memory = {form: peak_memory(step, device) / 2**20 for form, step in steps.items()}
    repeats = 1 if args.tiny else 5
    for form, times in interleaved(steps, rounds=repeats, repeats=repeats).items():
        seconds = median(times)
        print(
            f'| {case.model} | {form} | {1000 * seconds:.1f} | {case.batch / seconds:.0f} | '
            f'{flops / seconds / peak:.2f} | {memory[form]:.0f} |',
            flush=True,
        )
    if args.kernels:
        for form, step in steps.items():
            print(f'\n{case.model}, {form}: {kernel_report(step)}', flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--archs', nargs='+', default=['R26+S/32', 'R50+B/16', 'B/16'])
    parser.add_argument(
        '--forms',
        nargs='+',
        default=DEFAULT,
        choices=FORMS,
        metavar='NAME',
        help=f'of {", ".join(FORMS)}',
    )
    parser.add_argument('--batch', type=int, default=256)
    parser.add_argument('--jobs', type=int, default=8)
    parser.add_argument('--kernels', action='store_true')
    parser.add_argument('--tiny', action='store_true')
    parser.add_argument('--only-compile', action='store_true', help=argparse.SUPPRESS)
    args = parser.parse_args()
    warnings.simplefilter('ignore')  # the libraries warn a lot
    os.environ.setdefault('KINETO_LOG_LEVEL', '99')  # silences the profiler
    torch.backends.cudnn.benchmark = True
    size, batch, device = (64, 2, 'cpu') if args.tiny else (224, args.batch, 'cuda')
    cases = [Case(arch, size, batch, 'train', 'amp', device=device) for arch in args.archs]
    if args.only_compile:
        compiled_step(cases[0], args.forms[0], False)
        return
    if not args.tiny:
        with ThreadPoolExecutor(args.jobs) as pool:
            for case in cases:
                for form in args.forms:
                    pool.submit(compile_apart, case.model, form, batch)
        print(f'{torch.cuda.get_device_name()}, torch {torch.__version__}, {batch} images')
    print('| model | form | ms | images/s | MFU | peak MiB |\n|---|---|--:|--:|--:|--:|')
    for case in cases:
        measure(case, args)


if __name__ == '__main__':
    main()
