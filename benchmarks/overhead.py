"""Measure the overhead of this package's runner over MMEngine's, per training step.

    python benchmarks overhead [--arch b/16] [--batch-size 2] [--steps 10] [--rounds 6]

Both runners train the same ViT on the same images. This package's also does what MMEngine's does
not: it seeds each sample and step, watches for lost ranks, signals and unreadable images, and
checks the config. Short runs of both are interleaved in one process, and the medians of all steps
are compared. The status is 1 above the limit. On two cores, B/16 with a batch of 2 takes 5 minutes.
"""

import argparse
import statistics
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
import torch
from mmengine.hooks import Hook
from mmengine.registry import DATASETS
from torch.utils.data import Dataset

from benchmarks.tiny_run import build, tiny_cfg

LIMIT = 0.01  # allowed overhead, as a share of the step


@DATASETS.register_module(force=True)
class RandomImages(Dataset):
    """Images without loading time, so that nothing hides the overhead of the runner."""

    metainfo = dict(classes=tuple(map(str, range(10))))

    def __init__(self, size: int) -> None:
        from mmpretrain.structures import DataSample

        self._sample = dict(
            inputs=torch.zeros(3, size, size, dtype=torch.uint8), data_samples=DataSample()
        )

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> dict:
        sample = self._sample['data_samples'].clone().set_gt_label(index % 10)
        return dict(self._sample, data_samples=sample)


class StepClock(Hook):
    """Measures the seconds of each step of a run, except the first two, which warm up."""

    priority = 'LOWEST'

    def __init__(self) -> None:
        self.ends: list[float] = []

    def after_train_iter(self, runner: Any, *args: Any, **kwargs: Any) -> None:
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        self.ends.append(time.perf_counter())

    @property
    def seconds(self) -> list[float]:
        return [after - before for before, after in zip(self.ends[1:], self.ends[2:], strict=False)]


def config(work_dir: str, arch: str, size: int, batch: int, steps: int, ours: bool) -> Any:
    """The config of a run, for this package's runner (``ours``) or MMEngine's."""
    cfg = tiny_cfg(
        work_dir,
        'iter',
        **{
            'runner_type': 'vit_plugin.Runner' if ours else 'Runner',
            'train_cfg.max_iters': steps,
            'train_dataloader.batch_size': batch,
            'optim_wrapper.type': 'OptimWrapper',
            'train_cfg.val_interval': 10**6,  # never
        },
    )
    cfg.model.backbone = dict(
        type='vit_plugin.VisionTransformer',
        arch=arch,
        img_size=size,
        drop_path_rate=0.1,
        out_type='avg_featmap',
        with_cls_token=False,
    )
    cfg.model.data_preprocessor = dict(num_classes=10, mean=[127.5] * 3, std=[127.5] * 3)
    from vit_plugin.models import VisionTransformer

    with torch.device('meta'):
        cfg.model.head.in_channels = VisionTransformer(
            **{k: v for k, v in cfg.model.backbone.items() if k != 'type'}
        ).embed_dims
    cfg.train_dataloader.dataset = dict(type='RandomImages', size=size)
    cfg.val_dataloader = cfg.val_cfg = cfg.val_evaluator = None
    cfg.custom_hooks = []
    cfg.default_hooks.checkpoint = dict(type='CheckpointHook', interval=-1, save_last=False)
    cfg.default_hooks.runtime_info = dict(
        type='vit_plugin.RuntimeInfoHook' if ours else 'RuntimeInfoHook'
    )
    return cfg


def measure(arch: str, size: int, batch: int, steps: int, rounds: int) -> tuple[float, float]:
    """Median seconds of a step of MMEngine's runner and of this package's."""
    seconds: dict[bool, list[float]] = {False: [], True: []}  # by `ours`
    for number in range(rounds):
        # The order alternates, so that no runner always has the cooler machine.
        for ours in (True, False) if number % 2 == 0 else (False, True):
            with tempfile.TemporaryDirectory() as folder:
                runner, clock = build(config(folder, arch, size, batch, steps, ours)), StepClock()
                runner.register_hook(clock)
                runner.train()
                seconds[ours] += clock.seconds
    return statistics.median(seconds[False]), statistics.median(seconds[True])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition('\n\n')[0])
    parser.add_argument('--arch', default='b/16')
    parser.add_argument('--img-size', type=int, default=224)
    parser.add_argument('--batch-size', type=int, default=2)
    parser.add_argument('--steps', type=int, default=10)
    parser.add_argument('--rounds', type=int, default=6)
    args = parser.parse_args()
    warnings.simplefilter('ignore')
    mmengine_seconds, own_seconds = measure(
        args.arch, args.img_size, args.batch_size, args.steps, args.rounds
    )
    share = own_seconds / mmengine_seconds - 1
    print(
        f'{args.arch}, batch {args.batch_size}: a step takes {mmengine_seconds * 1e3:.1f} ms with '
        f"MMEngine's runner and {own_seconds * 1e3:.1f} ms with this package's, "
        f'{share:+.2%} (limit {LIMIT:.0%})'
    )
    sys.exit(share > LIMIT)


if __name__ == '__main__':
    main()
