"""A live bar of a run's progress in a terminal."""

import sys
from contextlib import ExitStack
from typing import Any

from mmengine.dist import is_main_process
from mmengine.hooks import Hook
from mmengine.runner import Runner
from tqdm import tqdm
from tqdm.contrib.logging import logging_redirect_tqdm

from vit_plugin.registry import HOOKS


@HOOKS.register_module()
class ProgressHook(Hook):
    """Shows a bar with iterations, speed and time left below the log while training in a terminal.

    It shows nothing where the output is a file or a pipe, and in other processes than the first.
    The lines of the log are the same in both cases.
    """

    priority = 'VERY_LOW'

    def before_train(self, runner: Runner) -> None:
        self._bar, self._stack = None, ExitStack()
        if is_main_process() and sys.stderr.isatty():
            self._bar = self._stack.enter_context(
                tqdm(
                    total=runner.max_iters,
                    initial=runner.iter,
                    unit='it',
                    dynamic_ncols=True,
                    leave=False,
                    desc=runner.experiment_name,
                )
            )
            self._stack.enter_context(logging_redirect_tqdm([runner.logger]))

    def after_train_iter(
        self, runner: Runner, batch_idx: int, data_batch: Any = None, outputs: Any = None
    ) -> None:
        if self._bar is not None:
            self._bar.update(runner.iter + 1 - self._bar.n)

    def after_val_epoch(self, runner: Runner, metrics: dict[str, float] | None = None) -> None:
        bar = getattr(self, '_bar', None)
        if bar is not None and metrics:
            name, value = next(iter(metrics.items()))
            bar.set_postfix_str(f'{name} {value:.4g}')

    def after_train(self, runner: Runner) -> None:
        self._stack.close()
