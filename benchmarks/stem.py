"""Measure a hybrid's CNN in eager mode, with channels-last maps, compiled by inductor, and both.

    python benchmarks stem [--archs R26+S/32 R50+B/16] [--batch 2] [--rounds 5]

The stem alone runs forward without gradients, and forward and backward, single-threaded, with the
variants interleaved. CPU time is measured. It prints the speed-up of each variant over eager: above
1, the variant is faster.
"""

import argparse
import copy
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from vit_plugin.models import VisionTransformer

WARM_UP = 2  # rounds that compile and warm up


def build_variants(arch: str) -> dict[str, tuple[nn.Module | Any, torch.memory_format]]:
    """The variants of a model's stem, each with the memory layout of its images."""
    stem = VisionTransformer(arch, img_size=224).patch_embed
    stem_channels_last = copy.deepcopy(stem).to(memory_format=torch.channels_last)
    contiguous, channels_last = torch.contiguous_format, torch.channels_last
    return {
        'eager': (stem, contiguous),
        'channels-last': (stem_channels_last, channels_last),
        'compiled': (torch.compile(copy.deepcopy(stem)), contiguous),
        'compiled, channels-last': (
            torch.compile(copy.deepcopy(stem_channels_last)),
            channels_last,
        ),
    }


def forward(stem: nn.Module, images: Tensor) -> None:
    with torch.no_grad():
        stem(images)


def forward_backward(stem: nn.Module, images: Tensor) -> None:
    stem(images)[0].sum().backward()
    stem.zero_grad()


def seconds(call: Callable[..., None], *args: Any) -> float:
    """Processor seconds of a call."""
    start = time.process_time()
    call(*args)
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--archs', nargs='+', default=['R26+S/32', 'R50+B/16'])
    parser.add_argument('--batch', type=int, default=2)
    parser.add_argument('--rounds', type=int, default=5)
    args = parser.parse_args()
    torch.set_num_threads(1)
    images = torch.randn(args.batch, 3, 224, 224)
    for arch in args.archs:
        variants = build_variants(arch)
        for call in (forward, forward_backward):
            took: dict[str, list[float]] = {name: [] for name in variants}
            for number in range(WARM_UP + args.rounds):
                for name, (stem, layout) in variants.items():
                    stem.train(call is forward_backward)
                    spent = seconds(call, stem, images.contiguous(memory_format=layout))
                    if number >= WARM_UP:
                        took[name].append(spent)
            medians = {name: statistics.median(values) for name, values in took.items()}
            ratios = (f'{name} {medians["eager"] / value:.2f}' for name, value in medians.items())
            print(f'{arch}, {call.__name__}: {", ".join(ratios)}', flush=True)


if __name__ == '__main__':
    main()
