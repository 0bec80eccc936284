"""Measure our models against timm, MMPretrain and transformers on the same weights and images.

The models run in turns.

python tools/benchmark.py --models B/16 R50+B/16 --modes forward train --out work_dirs/benchmark
"""

import argparse
import json
import os
import platform
import warnings
from dataclasses import asdict
from itertools import product
from pathlib import Path

from vit_plugin.apps.flags import KeyValue, at_least, run_tool

RECORD = 'benchmark.json'
PEERS = ('timm', 'mmpretrain', 'transformers')


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description='Measure models side by side.')
    parser.add_argument(
        '--models', nargs='+', default=['B/16'], help='variants, such as B/16 R50+B/16'
    )
    parser.add_argument(
        '--sizes', nargs='+', type=at_least(1), default=[224], help='sides of the images in pixels'
    )
    parser.add_argument(
        '--batch', nargs='+', type=at_least(1), default=[4], help='images at a time'
    )
    parser.add_argument('--modes', nargs='+', default=['forward'], choices=['forward', 'train'])
    parser.add_argument(
        '--dtypes',
        nargs='+',
        default=['float32'],
        choices=['float32', 'bfloat16', 'amp'],
        help='bfloat16 casts weights and images, amp only computes in it',
    )
    parser.add_argument(
        '--output', nargs='+', default=['cls_token'], choices=['cls_token', 'featmap']
    )
    parser.add_argument('--compile', action='store_true', help='all of them through torch.compile')
    parser.add_argument('--peers', nargs='*', default=PEERS, choices=PEERS, help='default: all')
    parser.add_argument(
        '--options',
        nargs='+',
        action=KeyValue,
        metavar='KEY=VALUE',
        help='further arguments of our backbone',
    )
    parser.add_argument(
        '--tolerance',
        type=at_least(0, float),
        help='largest difference from our output, relative to its largest value; default: by dtype',
    )
    parser.add_argument(
        '--rounds', type=at_least(1), default=10, help='turns of each implementation'
    )
    parser.add_argument('--device', help='default: a GPU if there is one')
    parser.add_argument('--threads', type=at_least(1), help='threads of the CPU')
    parser.add_argument('--out', type=Path, help='folder for benchmark.json')
    return parser


def machine(device: str) -> dict[str, str | int]:
    import torch

    from vit_plugin.passes import processor

    name = (
        torch.cuda.get_device_name(device)
        if device.startswith('cuda')
        else (f'{processor.name()}, {torch.backends.cpu.get_cpu_capability()}')
    )
    return dict(
        device=device,
        kind=name,
        threads=torch.get_num_threads(),
        torch=torch.__version__,
        python=platform.python_version(),
    )


def measure(args: argparse.Namespace) -> list[dict]:
    from mmengine.config import Config

    from vit_plugin.apps.benchmark.compare import Case, compare, format_table

    options = Config()
    options.merge_from_dict(args.options or {})  # reads the dots in the keys
    records = []
    for values in product(
        args.models, args.sizes, args.batch, args.modes, args.dtypes, args.output
    ):
        case = Case(*values, args.compile, args.device)
        print(f'\n{case}', flush=True)
        rows = compare(case, args.peers, args.rounds, options.to_dict(), args.tolerance)
        print(format_table(rows), flush=True)
        records.append(dict(case=asdict(case), rows=[asdict(row) for row in rows]))
    return records


def main(args: argparse.Namespace) -> None:
    import torch
    from mmengine.device import get_device

    from vit_plugin.apps.command_line import check_device
    from vit_plugin.files.complete import check_target, write_text

    args.device = args.device or get_device()
    if args.out:
        check_target(args.out / RECORD)
    check_device(args.device)
    warnings.simplefilter('ignore')  # the peers', at their import
    os.environ.setdefault('KINETO_LOG_LEVEL', '99')  # the profiler's, of every start and stop
    torch.backends.cudnn.benchmark = True
    if args.threads:
        torch.set_num_threads(args.threads)
    records = measure(args)
    if args.out:
        record = dict(machine=machine(args.device), rounds=args.rounds, results=records)
        write_text(args.out / RECORD, json.dumps(record, indent=1) + '\n')
        print(f'\n{RECORD} is in {args.out}')


if __name__ == '__main__':
    run_tool(make_parser(), main)
