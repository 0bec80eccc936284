"""Run all measurements that need a GPU, in parts of at most ten minutes, the most useful first.

    python benchmarks gpu [PART ...] [--out FOLDER] [--data FOLDER] [--tiny]

Each part is a list of commands, and prints their tables for docs/benchmarks.md. A command that is
not done in time is ended by SIGTERM; a training then saves, and the same call resumes it.
``--tiny`` tries every part with tiny numbers, also on a CPU, so that nothing fails for the first
time on a borrowed GPU.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from vit_plugin.engine.throughput import peak_flops
from vit_plugin.files.untrusted_text import markdown_table

ROOT = Path(__file__).parents[1]
# Seconds of a command, and seconds for a training to save after SIGTERM.
TIMEOUT, GRACE = 600.0, 60.0
# Options of ViTDet's backbone.
VITDET_OPTIONS = (
    'encoder.window.size=14',
    'encoder.window.global_blocks=2,5,8,11',
    'with_cls_token=False',
    'pos_embed=relative',
)


class Command(NamedTuple):
    """A command of a part.

    Attributes:
        title: the title of its table.
        argv: the arguments of ``python benchmarks`` if the first is ``speed``, of ``vit-plugin`` if
            it is ``train``, else of ``python``. ``{data}`` stands for the folder of ``--data``.
        tiny: the arguments with ``--tiny``, in place of ``argv``; empty: the same.
        data: the folder of its data within that of ``--data``, if it needs any.
        gpus: the number of GPUs that it needs.
    """

    title: str
    argv: tuple[str, ...]
    tiny: tuple[str, ...] = ()
    data: str = ''
    gpus: int = 1


def speed_command(
    title: str, *argv: str, peers: Sequence[str] = (), batch: int = 128, size: int = 224
) -> Command:
    """A call of ``benchmarks speed``."""
    command = ('speed', *argv, '--peers', *peers)
    return Command(
        title,
        (*command, '--batch-size', str(batch), '--img-size', str(size)),
        (*command, '--batch-size', '1', '--img-size', '64', '--rounds', '1'),
    )


def training_command(
    title: str,
    config: str,
    *argv: str,
    data: str = '',
    options: Sequence[str] = (),
    tiny: Sequence[str] = (),
) -> Command:
    """A call of ``vit-plugin train``, which resumes if it was stopped in time."""
    start = ('train', config, '--resume', *argv)
    splits = ('train', 'val', 'test') if data else ()
    options = (*options, *(f'{s}_dataloader.dataset.data_root={{data}}/{data}' for s in splits))
    return Command(
        title,
        (*start, '--cfg-options', *options) if options else start,
        (*start, '--cfg-options', *options, 'train_cfg.max_epochs=1', *tiny),
        data,
    )


EAGER_ARGS = (
    '--arch',
    'B/16',
    'R50+B/16',
    'R26+S/32',
    '--modes',
    'forward',
    'train',
    '--dtype',
    'amp',
)
TRAIN_ARGS = ('--modes', 'train', '--dtype', 'amp')
SMALL = 'configs/hybrid_vit/hybrid-vit-d2-w192_1xb256-16e_cifar10-folder.py'
LARGE = 'configs/hybrid_vit/hybrid-vit-d6-w256_1xb256-180e_cifar10-folder.py'
SHARDED = ('sharding.group=all', 'custom_hooks.0.type=vit_plugin.EMAHook')
DETECTION = ('train', '--resume', '--data', '{data}/BCCD', '--task', 'detection', '--amp')
# Gloo for tensors on the CPU, such as those of cpu_offload.
NCCL = 'env_cfg.dist_cfg.backend=cpu:gloo,cuda:nccl'


def distributed_command(title: str, number: int, *options: str) -> Command:
    """A tiny distributed run with one process per GPU."""
    start = (
        '-m',
        'torch.distributed.run',
        '--nproc_per_node',
        str(number),
        'benchmarks/tiny_run.py',
        '--launcher',
        'pytorch',
    )
    return Command(
        title,
        (*start, '--cfg-options', NCCL, *options),
        (*start, *(('--cfg-options', *options) if options else ())),
        gpus=number,
    )


PARTS: dict[str, tuple[Command, ...]] = {
    'tests': (
        Command(
            'the suite on the device',
            ('-m', 'pytest', '-q', 'tests/models', 'tests/passes'),
            ('-m', 'pytest', '-q', '-n0', 'tests/engine/exact/test_randomness.py'),
        ),
    ),
    'eager': (speed_command('eager, beside timm', *EAGER_ARGS, peers=['timm']),),
    'compiled': (
        Command(
            'compiled, beside timm',
            ('benchmarks/compiled.py', '--kernels'),
            ('benchmarks/compiled.py', '--tiny', '--archs', 'R+Ti/16'),
        ),
    ),
    'dinov3': (
        speed_command('DINOv3-B', '--arch', 'timm://vit_base_patch16_dinov3', *TRAIN_ARGS),
        speed_command(
            'DINOv3-B, compiled',
            '--arch',
            'timm://vit_base_patch16_dinov3',
            *TRAIN_ARGS,
            '--compile',
        ),
    ),
    'vitdet': (
        speed_command(
            "ViTDet-B's backbone",
            '--arch',
            'B/16',
            *TRAIN_ARGS,
            '--out-type',
            'featmap',
            '--cfg-options',
            *VITDET_OPTIONS,
            batch=4,
            size=1024,
        ),
    ),
    'recompute': tuple(
        speed_command(
            f'with_cp={mode}',
            '--arch',
            'B/16',
            'L/16',
            'R50+B/16',
            *TRAIN_ARGS,
            '--cfg-options',
            f'with_cp={mode}',
            batch=64,
        )
        for mode in ('False', 'selective', 'True')
    ),
    'detectors': tuple(
        Command(
            f'{model} on blood cells',
            (*DETECTION, '--model', model, '--epochs', '4'),
            (*DETECTION, '--model', model, '--epochs', '1', '--batch-size', '1'),
            'BCCD',
        )
        for model in ('retinanet', 'lw-detr', 'rf-detr', 'rf-detr-small')
    ),
    'digits': (
        training_command(
            'the digits recipe', 'configs/hybrid_vit/hybrid-vit-mini-p2_1xb16_digits.py'
        ),
    ),
    'cifar10': (training_command('the CIFAR-10 recipe', SMALL, '--amp', data='cifar10-jpeg'),),
    'nccl': tuple(
        distributed_command(f'{number} by NCCL, {variant}', number, *options)
        for number in (1, 2)
        for variant, options in (
            ('DDP', ()),
            ('FSDP2, saved in the background', SHARDED),
            ('FSDP2 with cpu_offload', (*SHARDED, 'sharding.cpu_offload=True')),
            ('FSDP2 in bfloat16', (*SHARDED, 'sharding.param_dtype=bfloat16')),
        )
    ),
    'cifar10-180': (
        training_command('the recipe of 180 epochs', LARGE, '--amp', data='cifar10-jpeg'),
    ),
}


def run(command: Command, name: str, args: argparse.Namespace) -> str:
    """Run a command, with files and log in the folder ``name``. Returns its table, or why not."""
    gpus = torch.cuda.device_count()
    if command.gpus > gpus > 0:
        return f'left out: it needs {command.gpus} GPUs, and there is {gpus}'
    if command.data and not (args.data / command.data).is_dir():
        return f'left out: there is no {args.data / command.data}'
    words = (command.tiny or command.argv) if args.tiny else command.argv
    argv = tuple(word.replace('{data}', str(args.data)) for word in words)
    folder = args.out / name
    folder.mkdir(parents=True, exist_ok=True)
    out = folder / 'benchmark.json'
    flags = {'speed': ['--out', out], 'train': ['--work-dir', folder]}.get(argv[0], [])
    if 'benchmarks/tiny_run.py' in argv:
        position = argv.index('benchmarks/tiny_run.py') + 1
        argv = (*argv[:position], str(folder), *argv[position:])
    program = {'speed': ['benchmarks'], 'train': ['-m', 'vit_plugin']}.get(argv[0], [])
    if '--cfg-options' in argv and flags:  # this option takes all words after it
        position = argv.index('--cfg-options')
        line = [sys.executable, *program, *argv[:position], *map(str, flags), *argv[position:]]
    else:
        line = [sys.executable, *program, *argv, *map(str, flags)]
    # The tests hide all GPUs, except for those that the environment names.
    visible = {'CUDA_VISIBLE_DEVICES': '0'} if 'pytest' in argv else {}
    with open(folder / 'log.txt', 'a') as log:
        process = subprocess.Popen(
            line, cwd=ROOT, env={**visible, **os.environ}, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            code = process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
            try:
                code = process.wait(GRACE)
            except subprocess.TimeoutExpired:  # the next command needs the GPU
                process.kill()
                code = process.wait()
    if code:
        return f'ended with status {code}; see {folder / "log.txt"}'
    return '\n'.join(table(folder, argv))


TITLES = [
    'model',
    'mode',
    'implementation',
    'ms',
    'images/s',
    'MFU',
    'peak MiB',
    'time over ours',
    'memory over ours',
]


def table(folder: Path, argv: Sequence[str]) -> Iterator[str]:
    """The lines of the results in a command's folder: a table, scores, or the end of its log."""
    if argv[0] == 'speed':
        record = json.loads((folder / 'benchmark.json').read_text())
        peak = peak_flops() / 1e12
        yield f'{record["machine"]["kind"]}, torch {record["machine"]["torch"]}'
        rows = [
            row_of(result['case'], row, peak)
            for result in record['results']
            for row in result['rows']
        ]
        yield markdown_table([TITLES, *rows], numbers=6)
    elif (folder / 'metrics.json').is_file():  # written by a training
        record = json.loads((folder / 'metrics.json').read_text())
        yield f'{record["last"]} after {record["epochs"]} epochs, {record["seconds"]} s'
    else:
        lines = (folder / 'log.txt').read_text().strip().splitlines()
        yield from lines if argv[0].endswith('.py') else lines[-1:]


def row_of(case: dict[str, Any], row: dict[str, Any], peak: float) -> list[str]:
    """The cells of a row of ``benchmarks speed``. ``peak`` is the GPU's, in TFLOP/s; 0: unknown."""
    return [
        case['model'],
        case['mode'],
        row['implementation'],
        f'{row["latency_ms"]:.1f}',
        f'{row["images_per_s"]:.1f}',
        # GFLOP per ms are TFLOP per second.
        f'{row["gflop"] / row["latency_ms"] / peak:.2f}' if peak else '',
        f'{row["peak_mib"]:.0f}',
        f'{row["times_ours"]:.2f}',
        f'{row["memory_over_ours"]:.2f}',
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('parts', nargs='*', metavar='PART', help=f'default: {" ".join(PARTS)}')
    parser.add_argument('--out', type=Path, default=Path('work_dirs/gpu'))
    parser.add_argument('--data', type=Path, default=ROOT / 'data')
    parser.add_argument('--tiny', action='store_true', help='try all parts, also on a CPU')
    args = parser.parse_args()
    args.out, args.data = args.out.resolve(), args.data.resolve()  # commands run in ROOT
    if unknown := [part for part in args.parts if part not in PARTS]:
        parser.error(f'there is no part {unknown[0]!r}; give some of {", ".join(PARTS)}')
    for part in args.parts or PARTS:
        for i, command in enumerate(PARTS[part]):
            print(f'\n## {part}: {command.title}\n{run(command, f"{part}-{i}", args)}', flush=True)


if __name__ == '__main__':
    main()
