"""Compare the speed and memory of this package's models with timm, MMPretrain and transformers.

All have the same weights and images, and run interleaved. With --latency it measures one image on
this machine's CPU instead: the time and memory of eight models in eager mode, by ONNX and by ONNX
in int8.

    python benchmarks speed --arch B/16 R50+B/16 --modes forward train --out speed.json
    python benchmarks speed --latency --threads 1
"""

import json
import os
import platform
import sys
import warnings
from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from itertools import product

from vit_plugin.commands.entry import run_command
from vit_plugin.commands.flag_rules import excludes
from vit_plugin.commands.flags import a_file, add_flags, at_least
from vit_plugin.errors import ConfigError

PEERS = ('timm', 'mmpretrain', 'transformers')
MAX_IDLE_LOAD = 0.5  # with a higher load average the machine is busy
# `run_command` reads these two: the advice when memory runs out, and which flags exclude others.
LESS_MEMORY = 'give a smaller --batch-size or --img-size'
RULES = (
    excludes(
        '--batch-size, --modes, --dtype, --out-type, --compile, --peers, --cfg-options, '
        '--tolerance',
        '--latency',
        'it is for the comparison with other implementations; leave one of them out',
    ),
)


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        '--latency',
        action='store_true',
        help='one image on the CPU: milliseconds and memory, eager, by ONNX and by int8',
    )
    add_flags(
        parser,
        '--arch',
        nargs='+',
        help='variants, such as B/16 R50+B/16; default: B/16, and eight with --latency',
    )
    add_flags(parser, '--img-size', nargs='+', default=[224], help='sides; default: 224')
    add_flags(parser, '--batch-size', nargs='+', default=[4], help='images at once; default: 4')
    parser.add_argument(
        '--modes',
        nargs='+',
        default=['forward'],
        choices=['forward', 'train'],
        help='train: forward, backward and the step of the optimizer; default: forward',
    )
    add_flags(
        parser,
        '--dtype',
        nargs='+',
        default=['float32'],
        choices=['float32', 'bfloat16', 'amp'],
        help='bfloat16 casts weights and images, amp only computes in it',
    )
    parser.add_argument(
        '--out-type',
        nargs='+',
        default=['cls_token'],
        choices=['cls_token', 'featmap'],
        help='what the backbone returns; default: cls_token',
    )
    add_flags(
        parser, '--out', type=a_file('.json'), metavar='FILE', help='a .json file for the results'
    )
    parser.add_argument(
        '--rounds', type=at_least(1), default=10, help='runs of each implementation; default: 10'
    )
    add_flags(parser, '--device')
    parser.add_argument('--threads', type=at_least(1), help='threads of the CPU')
    add_comparison(parser)


def add_comparison(parser: ArgumentParser) -> None:
    """Add the flags that ``--latency`` does not use."""
    parser.add_argument('--compile', action='store_true', help='all of them through torch.compile')
    parser.add_argument('--peers', nargs='*', default=PEERS, choices=PEERS, help='default: all')
    add_flags(parser, '--cfg-options', help='further arguments of our backbone')
    parser.add_argument(
        '--tolerance',
        type=at_least(0, float),
        help='largest difference from our output, relative to its largest value; default: by dtype',
    )


def machine(device: str) -> dict[str, str | int]:
    """The device and the versions, for the record."""
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


def measure(args: Namespace) -> list[dict]:
    """Compare the implementations in each combination of the flags, and print the tables."""
    from mmengine.config import Config

    from benchmarks.measuring.compare import Case, compare, format_table

    options = Config()
    options.merge_from_dict(args.cfg_options or {})  # reads the dots in the keys
    records = []
    for values in product(
        args.arch or ['B/16'],
        args.img_size,
        args.batch_size,
        args.modes,
        args.dtype,
        args.out_type,
    ):
        case = Case(*values, args.compile, args.device)
        print(f'\n{case}', flush=True)
        rows = compare(case, args.peers, args.rounds, options.to_dict(), args.tolerance)
        print(format_table(rows), flush=True)
        records.append(dict(case=asdict(case), rows=[asdict(row) for row in rows]))
    return records


def measure_latency(args: Namespace) -> list[dict]:
    """Measure each model at each image size, and print the table."""
    import torch

    from benchmarks.measuring.latency import MODELS, as_markdown, latency

    load = os.getloadavg()[0] if hasattr(os, 'getloadavg') else 0.0
    if load > MAX_IDLE_LOAD:
        print(
            f'This machine is busy (load {load:.1f}), so the times are too long.',
            file=sys.stderr,
        )
    rows = []
    for model, size in product(args.arch or MODELS, args.img_size):
        rows.append(latency(model, size, torch.get_num_threads(), args.rounds))
        print(f'{model}, {size} px', file=sys.stderr, flush=True)
    print(', '.join(f'{name} {value}' for name, value in machine('cpu').items()) + '\n')
    print(as_markdown(rows))
    return [asdict(row) for row in rows]


def check(args: Namespace) -> None:
    """Raise a ``ConfigError`` for ``--latency`` on another device than the CPU."""
    if args.latency and args.device not in (None, 'cpu'):
        raise ConfigError(f'--latency measures a CPU; leave --device {args.device} out.')


def main(args: Namespace) -> None:
    import torch
    from mmengine.device import get_device

    from anyfolder.complete import check_target, write_text
    from vit_plugin.inference.load import check_device

    args.device = 'cpu' if args.latency else args.device or get_device()
    if args.out:
        check_target(args.out)
    check_device(args.device)
    warnings.simplefilter('ignore')  # warnings of the peers at import
    os.environ.setdefault('KINETO_LOG_LEVEL', '99')  # silences the profiler at every start and stop
    torch.backends.cudnn.benchmark = True
    if args.threads:
        torch.set_num_threads(args.threads)
    records = measure_latency(args) if args.latency else measure(args)
    if args.out:
        record = dict(machine=machine(args.device), rounds=args.rounds, results=records)
        write_text(args.out, json.dumps(record, indent=1) + '\n')
        print(f'\nThe results are in {args.out}')


if __name__ == '__main__':
    run_command(sys.modules[__name__])
