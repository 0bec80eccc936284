"""A hybrid's CNN eager, with channels-last maps, compiled by inductor, and both.

    python benchmarks stem [--archs R26+S/32 R50+B/16] [--batch 2] [--rounds 5]

A forward without gradients and a training step of the stem alone, in one thread and in turns. Time
is that of the processor. Printed is the time of the plain stem over that of each: above 1, the
other is faster.
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


def forms(arch: str) -> dict[str, tuple[nn.Module | Any, torch.memory_format]]:
    """The stem of a model in each form, and the layout of its images."""
    stem = VisionTransformer(arch, img_size=224).patch_embed
    last = copy.deepcopy(stem).to(memory_format=torch.channels_last)
    plain, channels_last = torch.contiguous_format, torch.channels_last
    return {
        'plain': (stem, plain),
        'channels-last': (last, channels_last),
        'compiled': (torch.compile(copy.deepcopy(stem)), plain),
        'compiled, channels-last': (torch.compile(copy.deepcopy(last)), channels_last),
    }


def forward(stem: nn.Module, images: Tensor) -> None:
    with torch.no_grad():
        stem(images)


def step(stem: nn.Module, images: Tensor) -> None:
    stem(images)[0].sum().backward()
    stem.zero_grad()


def seconds(call: Callable[..., None], *args: Any) -> float:
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
        stems = forms(arch)
        for call in (forward, step):
            took: dict[str, list[float]] = {name: [] for name in stems}
            for turn in range(2 + args.rounds):  # the first two compile and warm up
                for name, (stem, layout) in stems.items():
                    stem.train(call is step)
                    spent = seconds(call, stem, images.contiguous(memory_format=layout))
                    if turn > 1:
                        took[name].append(spent)
            medians = {name: statistics.median(values) for name, values in took.items()}
            ratios = (f'{name} {medians["plain"] / value:.2f}' for name, value in medians.items())
            print(f'{arch}, {call.__name__}: {", ".join(ratios)}', flush=True)


if __name__ == '__main__':
    main()
