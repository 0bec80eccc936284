"""Measure what the framework's runner adds to a bare training loop."""

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.runner import Runner

from vit_plugin.apps.command_line import build_runner
from vit_plugin.engine.config import apply_loader_defaults

WARM_UP = 5  # iterations that are not counted


class BareSteps(Hook):
    """Repeats each iteration of the runner as a bare step on the same batch.

    The time between two bare steps is the runner's. It includes loading, hooks and logs.
    """

    priority = 'LOWEST'

    def __init__(self) -> None:
        self.runner_s: list[float] = []
        self.bare_s: list[float] = []
        self._end: float | None = None

    def after_train_iter(self, runner: Runner, batch_idx: int, data_batch: Any = None, outputs: Any = None) -> None:
        start = self._now()
        if self._end is not None:
            self.runner_s.append(start - self._end)
        self._bare_step(runner, data_batch)
        self._end = self._now()
        if self.runner_s:
            self.bare_s.append(self._end - start)

    @staticmethod
    def _now() -> float:
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        return time.perf_counter()

    @staticmethod
    def _bare_step(runner: Runner, data_batch: Any) -> None:
        model, wrapper = runner.model, runner.optim_wrapper
        with wrapper.optim_context(model):
            losses = model(**model.data_preprocessor(data_batch, True), mode='loss')
        loss = sum(value for name, value in losses.items() if 'loss' in name)
        loss.backward()
        if wrapper.clip_grad_kwargs:
            torch.nn.utils.clip_grad_norm_(model.parameters(), **wrapper.clip_grad_kwargs)
        wrapper.optimizer.step()
        wrapper.optimizer.zero_grad()


def runner_overhead(cfg: Config, iterations: int) -> Mapping[str, float]:
    """Train with a config for a number of iterations, and repeat each as a bare step.

    Returns:
        ``runner_ms`` and ``bare_ms``, the medians of the times. ``overhead`` is the median ratio of the runner's time
        to the bare time on the same batch, minus 1.
    """
    cfg.val_cfg = cfg.val_dataloader = cfg.val_evaluator = None
    cfg.train_cfg = dict(by_epoch=False, max_iters=iterations + WARM_UP + 1)
    cfg.train_dataloader.sampler = dict(type='InfiniteSampler', shuffle=True)
    cfg.param_scheduler = None
    cfg.default_hooks.checkpoint = None
    apply_loader_defaults(cfg)
    runner = build_runner(cfg, ['train_dataloader'])
    hook = BareSteps()
    runner.register_hook(hook)
    runner.train()
    ours, bare = np.array(hook.runner_s[WARM_UP:]), np.array(hook.bare_s[WARM_UP:])
    return dict(runner_ms=1e3 * np.median(ours), bare_ms=1e3 * np.median(bare), overhead=np.median(ours / bare) - 1)
