"""Trainings that print their images per second, for ``benchmarks busy``.

This file runs as a program, also in an environment that has ultralytics but neither vit_plugin nor
timm. Its argument is a :class:`Job` as JSON. It prints ``begun`` after the warm-up, and the images
per second at the end.
"""

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

WARM_UP = 3.0  # seconds of training that are not counted
TIMM_BATCH = 16


class Finished(BaseException):
    """Ends a training that was measured. A BaseException, so that no library reports it."""


@dataclass
class Job:
    """What to train on, and for how long.

    Args:
        library: a key of :data:`TRAININGS`.
        data: the data folder, or the YAML file of ultralytics.
        workers: number of processes that load data.
        seconds: seconds that are measured, after :data:`WARM_UP`.
        flags: arguments of `Request`, of timm's model, or of ultralytics' ``train``.
    """

    library: str
    data: str
    workers: int
    seconds: float
    flags: dict[str, Any] = field(default_factory=dict)


class Meter:
    """Counts images, and ends the training when its seconds are over."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._out = seconds, sys.stdout
        self._first = self._begun = 0.0  # when the first step ended, and when the count began
        self._images = 0

    def step(self, images: int) -> None:
        """Count the images of a step that has ended.

        Raises:
            Finished: if it was the last one.
        """
        now = time.perf_counter()
        self._first = self._first or now
        if not self._begun:
            if now - self._first >= WARM_UP:
                self._begun = now
                print('begun', file=self._out, flush=True)
            return
        self._images += images
        if now - self._begun >= self._seconds:
            print(self._images / (now - self._begun), file=self._out, flush=True)
            raise Finished


def train_vit_plugin(job: Job, meter: Meter) -> None:
    """Train by the config that ``train --data`` writes, without validations."""
    from vit_plugin.threads import share_cores

    share_cores()  # before torch, as the commands do
    from mmengine.hooks import Hook

    from vit_plugin.commands.command_line import build_runner
    from vit_plugin.config import apply_loader_defaults, read_config
    from vit_plugin.from_folder.request import Request
    from vit_plugin.from_folder.write import write_config
    from vit_plugin.importable import make_importable

    make_importable()

    class MeterHook(Hook):
        def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None) -> None:
            meter.step(len(data_batch['data_samples']))

    with tempfile.TemporaryDirectory() as folder:
        cfg = read_config(str(write_config(Request(job.data, work_dir=folder, **job.flags))))
        cfg.val_cfg = cfg.val_dataloader = cfg.val_evaluator = None
        cfg.test_cfg = cfg.test_dataloader = cfg.test_evaluator = None
        cfg.train_cfg = dict(by_epoch=False, max_iters=2**24)  # the largest possible number
        cfg.train_dataloader.sampler = dict(type='InfiniteSampler', shuffle=True)
        cfg.train_dataloader.num_workers = job.workers
        cfg.train_dataloader.persistent_workers = job.workers > 0
        cfg.param_scheduler = cfg.default_hooks.checkpoint = None
        cfg.custom_hooks, cfg.launcher = [], 'none'
        apply_loader_defaults(cfg)
        runner = build_runner(cfg, ['train_dataloader'])
        runner.register_hook(MeterHook())
        runner.train()


def train_timm(job: Job, meter: Meter) -> None:
    """Train a model of timm by its data loader and optimizer, as its script does."""
    import timm
    import torch
    from timm.data import ImageDataset, create_loader
    from timm.optim import create_optimizer_v2

    side = job.flags['img_size']
    model = timm.create_model(num_classes=10, **job.flags).train()
    optimizer = create_optimizer_v2(model, 'adamw', lr=1e-4)
    loader = create_loader(
        ImageDataset(job.data),
        input_size=(3, side, side),
        batch_size=TIMM_BATCH,
        is_training=True,
        use_prefetcher=False,
        num_workers=job.workers,
        persistent_workers=job.workers > 0,
        device=torch.device('cpu'),
    )
    for images, labels in _forever(loader):
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        meter.step(len(images))


def _forever(loader: Any) -> Iterator[Any]:
    while True:
        yield from loader


def train_ultralytics(job: Job, meter: Meter) -> None:
    """Train yolo11n from scratch, with the default settings of ``yolo train``."""
    from ultralytics import YOLO

    model = YOLO('yolo11n.yaml')
    model.add_callback('on_train_batch_end', lambda trainer: meter.step(trainer.batch_size))
    with tempfile.TemporaryDirectory() as folder:
        model.train(
            data=job.data,
            workers=job.workers,
            device='cpu',
            epochs=10**6,
            val=False,
            plots=False,
            project=folder,
            **job.flags,
        )


TRAININGS = dict(vit_plugin=train_vit_plugin, timm=train_timm, ultralytics=train_ultralytics)


def main() -> None:
    job = Job(**json.loads(sys.argv[1]))
    meter = Meter(job.seconds)
    # Modules of this folder would shadow packages with the same name.
    sys.path[:] = [path for path in sys.path if Path(path).resolve() != Path(__file__).parent]
    with redirect_stdout(sys.stderr), suppress(Finished):
        TRAININGS[job.library](job, meter)


if __name__ == '__main__':
    main()
