r"""Compare the cost of feature pyramids: ViT-Adapter, ViTDet and a plain ViT with SimpleFPN.

    python benchmarks adapter [--arch B/16] [--img-size 1024] [--rounds 3] [--threads 2] \
        [--only adapter ...]

Every model returns feature maps of 256 channels at strides 4 to 64. The adapters are followed by
MMDetection's FPN. For each the run prints the number of parameters and the FLOPs of a forward. Peak
memory and median time are of a forward without gradients, and of "training", a forward and
backward. Memory and FLOPs are the same in every run; times need a quiet machine. ``--rounds 0``
leaves the times out. About 25 minutes on two quiet cores, half of it for the memory.
"""

import argparse
import os
import statistics
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from mmengine.model import revert_sync_batchnorm
from mmengine.registry import MODELS
from torch import nn

import vit_plugin.detection  # noqa: F401  must be imported before MMDetection
from benchmarks.measuring.calls import count_flops, interleaved, peak_memory
from vit_plugin.arch import parse_arch
from vit_plugin.files.untrusted_text import markdown_table

CHANNELS = 256
COLUMNS = (
    'M parameters',
    'forward GFLOP',
    'forward MiB',
    'forward s',
    'training MiB',
    'training s',
)


def configs(arch: Any, size: int, attention: dict | None = None) -> dict[str, tuple[dict, dict]]:
    """The configs of the backbone and neck of every row. ``attention`` is the adapter's."""
    sizes = parse_arch(arch)
    # The last block of each quarter, as in ViTDet.
    global_blocks = tuple(range(sizes.num_layers // 4 - 1, sizes.num_layers, sizes.num_layers // 4))
    windows = dict(window=dict(size=14, global_blocks=global_blocks))
    vit = dict(arch=arch, img_size=size, with_cls_token=False)
    plain = dict(vit, type='vit_plugin.VisionTransformer', out_type='featmap')
    simple = dict(
        type='vit_plugin.SimpleFPN', in_channels=sizes.embed_dims, out_channels=CHANNELS, num_outs=5
    )
    fpn = dict(
        type='mmdet.FPN', in_channels=[sizes.embed_dims] * 4, out_channels=CHANNELS, num_outs=5
    )
    adapter = dict(type='vit_plugin.ViTAdapter', backbone=vit, attention=attention)
    frozen = dict(vit, frozen_stages=sizes.num_layers)
    return {
        'SimpleFPN': (plain, simple),
        'ViTDet': (
            dict(plain, pos_embed=dict(type='learned', relative=True), encoder=windows),
            simple,
        ),
        'adapter': (adapter, fpn),
        'adapter, windows': (dict(adapter, backbone=dict(vit, encoder=windows)), fpn),
        'adapter, recomputed': (dict(adapter, with_cp=True), fpn),
        'adapter, frozen': (dict(adapter, backbone=frozen, inject=False, add_tokens='each'), fpn),
    }


def build(backbone: dict, neck: dict) -> nn.Module:
    return revert_sync_batchnorm(nn.Sequential(MODELS.build(backbone), MODELS.build(neck)))


def timed_calls(model: nn.Module, images: torch.Tensor) -> dict[str, Callable[[], None]]:
    """A forward in eval mode without gradients, and a forward and backward in training mode."""

    def forward() -> None:
        model.eval()
        with torch.no_grad():
            model(images)

    def training() -> None:
        model.train()
        sum(x.square().mean() for x in model(images)).backward()
        model.zero_grad()

    return dict(forward=forward, training=training)


def measure(
    arch: Any = 'B/16',
    size: int = 1024,
    rounds: int = 3,
    only: Sequence[str] = (),
    say: Callable[[str], None] = print,
    **options: Any,
) -> dict[str, dict[str, float]]:
    """Map the name of each row to its figures by column, without times if ``rounds`` is 0.

    Args:
        arch: as `VisionTransformer` takes it.
        size: the side of the image in pixels.
        rounds: timings of each call.
        only: names of rows; by default all.
        say: gets a line for each row before the timings.
        options: of :func:`configs`.
    """
    torch.manual_seed(0)
    images, device = torch.randn(1, 3, size, size), torch.device('cpu')
    timed, rows = {}, {}
    for name, parts in configs(arch, size, **options).items():
        if only and name not in only:
            continue
        model = build(*parts)
        calls = timed_calls(model, images)
        row = {
            'M parameters': sum(parameter.numel() for parameter in model.parameters()) / 1e6,
            'forward GFLOP': count_flops(calls['forward']) / 1e9,
        }
        for mode, call in calls.items():
            row[f'{mode} MiB'] = peak_memory(call, device) / 2**20
        say(f'{name:<22}' + ''.join(f'  {key} {value:.1f}' for key, value in row.items()))
        rows[name] = row
        if rounds:  # all models stay in memory, since their timings are interleaved
            timed |= {(name, mode): call for mode, call in calls.items()}
    if rounds:
        for (name, mode), times in interleaved(timed, rounds).items():
            rows[name][f'{mode} s'] = statistics.median(times)
    return rows


def table(rows: dict[str, dict[str, float]]) -> str:
    """The rows in Markdown."""
    columns = [column for column in COLUMNS if all(column in row for row in rows.values())]
    lines = [['', *columns]]
    for name, row in rows.items():
        digits = {
            column: 2 if column.endswith(' s') else 1 if column.startswith('M ') else 0
            for column in columns
        }
        lines.append([name, *(f'{row[column]:,.{digits[column]}f}' for column in columns)])
    return markdown_table(lines, numbers=len(columns))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--arch', default='B/16')
    parser.add_argument('--img-size', type=int, default=1024, help='side of the image in pixels')
    parser.add_argument('--rounds', type=int, default=3, help='timings of each call; 0 for none')
    parser.add_argument('--threads', type=int, default=torch.get_num_threads())
    parser.add_argument(
        '--only', nargs='+', choices=configs('B/16', 1024), default=(), metavar='ROW'
    )
    args = parser.parse_args()
    warnings.simplefilter('ignore')
    # Silences the profiler's message at every start and stop.
    os.environ.setdefault('KINETO_LOG_LEVEL', '99')
    torch.set_num_threads(args.threads)
    rows = measure(
        args.arch, args.img_size, args.rounds, args.only, lambda line: print(line, flush=True)
    )
    print(
        f'\n{args.arch}, one image of {args.img_size} px, {args.threads} threads, {args.rounds} '
        'rounds\n'
    )
    print(table(rows))


if __name__ == '__main__':
    main()
