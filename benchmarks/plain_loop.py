"""Measure the overhead of MMEngine's runner over a plain PyTorch loop, for the model of a config.

    python benchmarks plain_loop CONFIG [--rounds 10] [--threads N] [--cfg-options KEY=VALUE ...]

A round is an iteration. The overhead includes data loading, hooks and logs.
"""

import argparse
import tempfile
from typing import Any

import numpy as np
import torch
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.runner import Runner

from benchmarks.measuring.calls import clock
from vit_plugin.commands.command_line import build_runner
from vit_plugin.commands.flags import add_flags
from vit_plugin.config import apply_loader_defaults, read_config

WARM_UP = 5  # iterations that are not counted


class PlainStepHook(Hook):
    """Repeats each iteration of the runner as a step of a plain loop, on the same batch.

    The time between two plain steps is the runner's. It includes loading, hooks and logs. The model
    must have ``forward(..., mode='loss')``, as all models of the frameworks do.
    """

    priority = 'LOWEST'

    def __init__(self) -> None:
        self.starts: list[float] = []
        self.ends: list[float] = []

    def after_train_iter(
        self, runner: Runner, batch_idx: int, data_batch: Any = None, outputs: Any = None
    ) -> None:
        self.starts.append(clock())
        model, wrapper = runner.model, runner.optim_wrapper
        with wrapper.optim_context(model):
            losses = model(**model.data_preprocessor(data_batch, True), mode='loss')
        sum(value for name, value in losses.items() if 'loss' in name).backward()
        if wrapper.clip_grad_kwargs:
            # By norm or by value, as the config says.
            wrapper.clip_func(model.parameters(), **wrapper.clip_grad_kwargs)
        wrapper.optimizer.step()
        wrapper.optimizer.zero_grad()
        self.ends.append(clock())


def runner_overhead(cfg: Config, iterations: int) -> dict[str, float]:
    """Train with a config for a number of iterations, and repeat each as a step of a plain loop.

    Returns:
        ``runner_ms`` and ``plain_ms``, the medians of the times. ``overhead`` is the median ratio
        of the runner's time to the plain loop's on the same batch, minus 1.
    """
    cfg.val_cfg = cfg.val_dataloader = cfg.val_evaluator = None
    cfg.train_cfg = dict(by_epoch=False, max_iters=iterations + WARM_UP + 1)
    cfg.train_dataloader.sampler = dict(type='InfiniteSampler', shuffle=True)
    cfg.param_scheduler = None
    cfg.default_hooks.checkpoint = None
    apply_loader_defaults(cfg)
    runner = build_runner(cfg, ['train_dataloader'])
    hook = PlainStepHook()
    runner.register_hook(hook)
    runner.train()
    starts, ends = np.array(hook.starts), np.array(hook.ends)
    # The runner's time is that from the end of a plain step to the start of the next one.
    runner_times = (starts[1:] - ends[:-1])[WARM_UP:]
    plain_times = (ends - starts)[WARM_UP + 1 :]
    return dict(
        runner_ms=1e3 * np.median(runner_times),
        plain_ms=1e3 * np.median(plain_times),
        overhead=np.median(runner_times / plain_times) - 1,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition('\n\n')[0])
    parser.add_argument('config')
    parser.add_argument('--rounds', type=int, default=10, help='iterations; default: 10')
    parser.add_argument('--threads', type=int, help="default: torch's")
    add_flags(parser, '--cfg-options')
    args = parser.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)
    cfg = read_config(args.config, args.cfg_options)
    with tempfile.TemporaryDirectory() as cfg.work_dir:
        cfg.launcher = 'none'
        medians = runner_overhead(cfg, args.rounds)
    print(
        f'an iteration: runner {medians["runner_ms"]:.1f} ms, plain loop '
        f'{medians["plain_ms"]:.1f} ms, overhead {medians["overhead"]:.2%}'
    )


if __name__ == '__main__':
    main()
