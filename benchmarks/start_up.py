"""Measure how long a start takes: imports, a prediction, the first step, and compilation.

    python benchmarks start_up [--arch L/16] [--rounds 3] [--data FOLDER] [--only imports infer]
                               [--checkpoint FILE]

It prints wall-clock seconds, processor seconds and peak memory, the medians of the rounds. It takes
about 6 minutes on two quiet cores, and needs Linux. ``infer`` predicts one image of 32 px with a
classifier of random weights, and with ``--checkpoint``, such as a detector. ``train`` is a training
of one step, ``compiled`` the first two steps of a compiled ViT. With ``--data``, a folder of images
with boxes, it only measures after how many seconds ``train --data`` prints which line, and how long
it takes to reject a misspelled task.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np

PARTS = ('imports', 'infer', 'train', 'compiled')
IMPORTS = ('torch', 'timm', 'mmpretrain', 'mmpretrain.models', 'vit_plugin', 'vit_plugin.models')
# The config of a training of one step. The braces of the template are filled by `first_steps`.
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
# Scripts: train a config with MMEngine's runner; write a classifier of random weights to a
# checkpoint; and print the seconds of two steps of a compiled ViT.
MMENGINE = """
from mmengine.config import Config
from mmengine.runner import Runner
cfg = Config.fromfile({config!r})
cfg.work_dir = {folder!r}
Runner.from_cfg(cfg).train()
"""
CLASSIFIER = """
import torch
from mmengine.config import Config
from vit_plugin.importable import make_importable
from vit_plugin.measure.planning.planned_model import build_classifier
make_importable()
model = dict(
    type='ImageClassifier',
    backbone=dict(type='vit_plugin.VisionTransformer', arch='Ti/4', img_size=32),
    head=dict(type='vit_plugin.ViTClsHead', num_classes=2, in_channels=192))
cfg = dict(
    default_scope='mmpretrain', model=model,
    data_preprocessor=dict(num_classes=2, mean=[125.] * 3, std=[60.] * 3, to_rgb=True),
    test_dataloader=dict(dataset=dict(pipeline=[
        dict(type='LoadImageFromFile'), dict(type='Resize', scale=32), dict(type='PackInputs')])))
state = build_classifier(Config(cfg)).state_dict()
meta = dict(cfg=Config(cfg).pretty_text, dataset_meta=dict(classes=['a', 'b']))
torch.save(dict(state_dict=state, meta=meta), {path!r})
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

# A stage of a training on boxes -> words of the first line that the command prints then.
STAGES = {
    'the first word': '',
    'its memory': 'of memory',
    'its duration': 'on this machine',
    'the first step': 'Epoch 1/',
}


def seconds_to_stages(data: str, work_dir: str) -> dict[str, float]:
    """Seconds until the default detector's training shows each of :data:`STAGES`.

    Raises:
        SystemExit: if it ends before, with the end of its output.
    """
    flags = ('--data', data, '--task', 'detection', '--work-dir', work_dir)
    command, seconds = (sys.executable, '-m', 'vit_plugin', 'train', *flags), dict[str, float]()
    start, lines = time.perf_counter(), list[str]()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        for line in process.stdout or ():
            lines.append(line)
            for name, words in STAGES.items():
                if words in line:
                    seconds.setdefault(name, time.perf_counter() - start)
            if len(seconds) == len(STAGES):
                break
        process.terminate()
    if missing := [name for name in STAGES if name not in seconds]:
        raise SystemExit(f'{" ".join(command)} ended before {missing[0]}: {"".join(lines)[-2000:]}')
    return seconds


def print_stages(data: str, rounds: int) -> None:
    """Print the median seconds until each stage, and the cost of an error."""
    times: dict[str, list[float]] = {name: [] for name in STAGES}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            for name, taken in seconds_to_stages(data, f'{folder}/run').items():
                times[name].append(taken)
    for name, taken in times.items():
        print(f'train --data, {name:<30}{statistics.median(taken):7.2f}', flush=True)
    wrong = (sys.executable, '-m', 'vit_plugin', 'train', '--data', data, '--task', 'detecton')
    print(f'{"a misspelled task":<44}{cost(wrong, rounds, check=False)}')


class Cost(NamedTuple):
    """The cost of a command: wall-clock and processor seconds, and MB at its peak."""

    clock: float
    processor: float
    memory: float

    def __str__(self) -> str:
        return f'{self.clock:7.2f} s {self.processor:7.2f} s of a processor {self.memory:7.0f} MB'


def cost(arguments: Sequence[str], rounds: int, check: bool = True) -> Cost:
    """The medians of a command's costs."""
    costs = []
    for _ in range(rounds):
        start = time.perf_counter()
        with tempfile.TemporaryFile('w+') as output:
            process = subprocess.Popen(arguments, stdout=output, stderr=output)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            clock = time.perf_counter() - start
            if check and process.returncode:
                output.seek(0)
                raise SystemExit(f'{" ".join(arguments)}: {output.read()[-2000:]}')
        costs.append((clock, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e6))
    return Cost(*map(statistics.median, zip(*costs, strict=True)))


def predictions(folder: Path, checkpoint: str | None, rounds: int) -> dict[str, Cost]:
    """The cost of ``infer`` for one image, by the model."""
    image, classifier = folder / 'image.png', str(folder / 'classifier.pth')
    cv2.imwrite(str(image), np.full((32, 32, 3), 99, np.uint8))
    subprocess.run((sys.executable, '-c', CLASSIFIER.format(path=classifier)), check=True)
    paths = {'a classifier': classifier} | ({checkpoint: checkpoint} if checkpoint else {})
    return {
        name: cost((sys.executable, '-m', 'vit_plugin', 'infer', path, str(image)), rounds)
        for name, path in paths.items()
    }


def first_steps(folder: Path, rounds: int) -> dict[str, Cost]:
    """The cost of a training of one step.

    One is of this package's runner and ViT (``ours``), one of MMEngine's and MMPretrain's.
    """
    for name in ('a', 'b'):
        (folder / 'images' / name).mkdir(parents=True)
        for i in range(8):
            cv2.imwrite(
                str(folder / 'images' / name / f'{i}.png'), np.full((32, 32, 3), i, np.uint8)
            )
    configs = {}
    for backbone, name in (
        ('vit_plugin.MMVisionTransformer', 'ours'),
        ('VisionTransformer', "MMPretrain's"),
    ):
        config = folder / f'{backbone.lower().replace(".", "_")}.py'
        config.write_text(TRAIN.format(type=backbone, folder=str(folder / 'images')))
        configs[name] = str(config)
    work = str(folder / 'work')
    return {
        'ours': cost(
            (sys.executable, '-m', 'vit_plugin', 'train', configs['ours'], '--work-dir', work),
            rounds,
        ),
        "MMPretrain's": cost(
            (sys.executable, '-c', MMENGINE.format(config=configs["MMPretrain's"], folder=work)),
            rounds,
        ),
    }


def compiled(arch: str, line: str) -> list[str]:
    """Seconds of the first and the second step of a model that this line of code compiles."""
    script = COMPILED.format(arch=arch, compile=line)
    return subprocess.run(
        (sys.executable, '-c', script), check=True, capture_output=True, text=True
    ).stdout.split()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition('\n\n')[0])
    parser.add_argument('--arch', default='L/16')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--data', help='a folder of boxes')
    parser.add_argument('--checkpoint', help='a further model that predicts')
    parser.add_argument('--only', nargs='+', choices=PARTS, default=PARTS)
    args = parser.parse_args()
    if args.data:
        print_stages(args.data, args.rounds)
        return
    for name in IMPORTS if 'imports' in args.only else ():
        taken = cost((sys.executable, '-c', f'import {name}'), args.rounds)
        print(f'import {name:<37}{taken}', flush=True)
    with tempfile.TemporaryDirectory() as folder:
        if 'infer' in args.only:
            for name, taken in predictions(Path(folder), args.checkpoint, args.rounds).items():
                print(f'infer, {name:<37}{taken}', flush=True)
        if 'train' in args.only:
            for name, taken in first_steps(Path(folder), args.rounds).items():
                print(f'a training of one step, {name:<20}{taken}', flush=True)
    if 'compiled' in args.only:
        print_compiled(args.arch)


def print_compiled(arch: str) -> None:
    """Print the seconds of a model whose blocks are compiled, and of one compiled as a whole."""
    for name, line in (
        ('blocks', 'compile_blocks(model)'),
        ('whole model', 'model = torch.compile(model)'),
    ):
        first, second = compiled(arch, line)
        print(
            f'{arch} compiled, {name:<20} first step {float(first):7.2f}, second '
            f'{float(second):6.2f}'
        )


if __name__ == '__main__':
    main()
