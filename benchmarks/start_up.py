"""How long a start takes: imports, the first step of a training, and of compiled training.

    python benchmarks start_up [--arch L/16] [--rounds 3] [--data FOLDER]

Prints seconds, the median of the rounds. About 6 minutes on two quiet cores. With ``--data``, a
folder of boxes, it prints only when ``train --data`` says what, and how long an error takes.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np

IMPORTS = ('torch', 'timm', 'mmpretrain', 'mmpretrain.models', 'vit_plugin', 'vit_plugin.models')
TRAIN = """
default_scope = 'mmpretrain'
data_preprocessor = dict(num_classes=2, mean=[125.] * 3, std=[60.] * 3)
model = dict(
    type='ImageClassifier',
    head=dict(type='VisionTransformerClsHead', num_classes=2, in_channels=192),
    backbone=dict(type='{type}', arch='deit-tiny', img_size=32, patch_size=4))
train_dataloader = dict(
    batch_size=8, num_workers=0, sampler=dict(type='DefaultSampler', shuffle=True), dataset=dict(
        type='CustomDataset', data_root={folder!r},
        pipeline=[dict(type='LoadImageFromFile'), dict(type='PackInputs')]))
optim_wrapper = dict(optimizer=dict(type='AdamW', lr=1e-3))
train_cfg = dict(by_epoch=False, max_iters=1)
"""
MMENGINE = """
from mmengine.config import Config
from mmengine.runner import Runner
cfg = Config.fromfile({config!r})
cfg.work_dir = {folder!r}
Runner.from_cfg(cfg).train()
"""
COMPILED = """
import time
import torch
import torch._inductor.config
from vit_plugin.engine.compile import compile_blocks
from vit_plugin.models import VisionTransformer
torch._inductor.config.force_disable_caches = True
model, image = VisionTransformer({arch!r}).train(), torch.randn(1, 3, 224, 224)
{compile}
for _ in range(2):
    start = time.time()
    model(image)[-1].sum().backward()
    print(time.time() - start)
"""

# What a training of boxes says -> words of the first line that says it.
SAID = {
    'the first word': '',
    'its memory': 'of memory',
    'its duration': 'on this machine',
    'the first step': 'Epoch 1/',
}


def waits(data: str, work_dir: str) -> dict[str, float]:
    """Seconds until the default detector's training says each of :data:`SAID`."""
    flags = ('--data', data, '--task', 'detection', '--work-dir', work_dir)
    command, found = (sys.executable, '-m', 'vit_plugin', 'train', *flags), dict[str, float]()
    start = time.perf_counter()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        for line in process.stdout or ():
            for name, words in SAID.items():
                if words in line:
                    found.setdefault(name, time.perf_counter() - start)
            if len(found) == len(SAID):
                break
        process.terminate()
    return found


def print_waits(data: str, rounds: int) -> None:
    times: dict[str, list[float]] = {name: [] for name in SAID}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            for name, taken in waits(data, f'{folder}/run').items():
                times[name].append(taken)
    for name, taken in times.items():
        print(f'train --data, {name:<30}{statistics.median(taken):7.2f}', flush=True)
    wrong = (sys.executable, '-m', 'vit_plugin', 'train', '--data', data, '--task', 'detecton')
    print(f'{"a misspelled task":<44}{seconds(wrong, rounds, check=False):7.2f}')


def seconds(arguments: Sequence[str], rounds: int, check: bool = True) -> float:
    """The median of a command's wall times."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        subprocess.run(arguments, check=check, capture_output=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def first_steps(folder: Path, rounds: int) -> dict[str, float]:
    """Seconds of a whole training of one step: our runner and ViT, and MMEngine's runner with
    MMPretrain's ViT.
    """
    for name in ('a', 'b'):
        (folder / 'images' / name).mkdir(parents=True)
        for i in range(8):
            cv2.imwrite(
                str(folder / 'images' / name / f'{i}.png'), np.full((32, 32, 3), i, np.uint8)
            )
    commands = {}
    for kind, runs in (
        ('vit_plugin.MMVisionTransformer', 'ours'),
        ('VisionTransformer', "MMPretrain's"),
    ):
        config = folder / f'{kind.lower().replace(".", "_")}.py'
        config.write_text(TRAIN.format(type=kind, folder=str(folder / 'images')))
        commands[runs] = str(config)
    work = str(folder / 'work')
    return {
        'ours': seconds(
            (sys.executable, '-m', 'vit_plugin', 'train', commands['ours'], '--work-dir', work),
            rounds,
        ),
        "MMPretrain's": seconds(
            (sys.executable, '-c', MMENGINE.format(config=commands["MMPretrain's"], folder=work)),
            rounds,
        ),
    }


def compiled(arch: str, line: str) -> list[str]:
    """The first and the second step of a model compiled by this line."""
    script = COMPILED.format(arch=arch, compile=line)
    return subprocess.run(
        (sys.executable, '-c', script), check=True, capture_output=True, text=True
    ).stdout.split()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('--arch', default='L/16')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--data', help='a folder of boxes')
    args = parser.parse_args()
    if args.data:
        print_waits(args.data, args.rounds)
        return
    for name in IMPORTS:
        print(
            'import '
            f'{name:<40}{seconds((sys.executable, "-c", f"import {name}"), args.rounds):7.2f}',
            flush=True,
        )
    with tempfile.TemporaryDirectory() as folder:
        for name, taken in first_steps(Path(folder), args.rounds).items():
            print(f'a training of one step, {name:<23}{taken:7.2f}', flush=True)
    for name, line in (
        ('blocks', 'compile_blocks(model)'),
        ('whole model', 'model = torch.compile(model)'),
    ):
        first, second = compiled(args.arch, line)
        print(
            f'{args.arch} compiled, {name:<20} first step {float(first):7.2f}, second '
            f'{float(second):6.2f}'
        )


if __name__ == '__main__':
    main()
