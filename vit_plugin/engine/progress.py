"""The progress of a training: a live line for each epoch in a terminal, and lines in a pipe."""

import math
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from shutil import get_terminal_size
from typing import Any

from mmengine.dist import is_main_process
from mmengine.hooks import Hook
from mmengine.runner import EpochBasedTrainLoop, Runner
from tqdm import tqdm
from tqdm.contrib.logging import logging_redirect_tqdm

from vit_plugin.registry import HOOKS

from .console import SHOWN_LIVE, TRAIN_TAGS
from .loggers import is_in_terminal, quieten
from .pace import Pace, seconds_left
from .validation_record import to_per_cent

LOSS_WINDOW = 10  # steps over which the loss is averaged, as in MMEngine's lines
LR_SCALARS = ('train/base_lr', 'train/lr')  # the second is only the rate of the first group
SLOW = 10  # images/s below which a decimal is shown
PIPE_INTERVAL = 5.0  # seconds between the lines of a pipe
# Formats of tqdm's line: in a terminal, in one too narrow for a bar, and in a pipe.
LAYOUT = '{desc} {bar:8} {percentage:3.0f}%{postfix}'
NARROW_LAYOUT = '{desc}{postfix}'
PIPE_LAYOUT = '{desc}, step {n:,} of {total:,}{postfix}'
BAR_COLUMNS = 80  # columns that a terminal needs for a bar


@HOOKS.register_module()
class ProgressHook(Hook):
    """Shows a line for each epoch of a training in a terminal: loss, time left, images/s, lr.

    A validation replaces the time left by the metric that ``save_best`` names, or by the first one.
    A narrow terminal has no bar. In a training by iterations, a line goes from one validation to
    the next. MMEngine's own training lines then go only to the log file, unless the config has
    ``verbose=True``.

    A file or a pipe gets a new line at the first step, and then every 5 seconds, instead of
    MMEngine's lines. Only the first process prints.
    """

    priority = 'BELOW_NORMAL'  # after the LoggerHook, and before the ReportHook ends the output
    _line: tqdm | None = None
    _pace: Pace | None = None
    _is_shown = False

    def before_train(self, runner: Runner) -> None:
        self._stack = ExitStack()  # contexts that end with the training
        self._is_shown, self._is_live = is_main_process(), is_in_terminal()
        self._printed_at = -math.inf  # time of the last line in a pipe
        if self._is_shown:
            if self._is_live:
                self._stack.enter_context(logging_redirect_tqdm([runner.logger]))
            if not runner.cfg.get('verbose', True):
                quieten(runner.logger)
                quieten(runner.logger, SHOWN_LIVE if self._is_live else TRAIN_TAGS)

    def before_train_iter(self, runner: Runner, batch_idx: int, data_batch: Any = None) -> None:
        if self._is_shown and (self._line is None or self._line.n == self._line.total):
            self._end_line()
            self._line = create_line(runner, self._is_live)
            self._pace = self._pace or Pace(time.perf_counter())

    def after_train_iter(self, runner: Runner, *args: Any, **kwargs: Any) -> None:
        if self._line is not None and self._pace is not None:
            self._pace.step(time.perf_counter())
            self._show(runner, f'{tqdm.format_interval(seconds_left(runner, self._pace))} left')
            self._line.update()
            if (
                not self._is_live
                and (now := time.perf_counter()) - self._printed_at >= PIPE_INTERVAL
            ):
                print(self._line, flush=True)
                self._printed_at = now

    def before_val_epoch(self, runner: Runner) -> None:
        if self._pace is not None:
            self._pace.pause(time.perf_counter())
        if self._line is not None and self._is_live:
            self._show(runner, 'validating')
            self._line.refresh()

    def after_val_epoch(self, runner: Runner, metrics: dict[str, float] | None = None) -> None:
        if self._pace is not None:
            self._pace.resume(time.perf_counter())
        if self._line is not None and metrics:
            self._show(runner, format_metric(runner, metrics))
        self._end_line()

    def after_train(self, runner: Runner) -> None:
        self.close()

    def close(self) -> None:
        """End the line, which stays visible, and log as before the training."""
        if self._is_shown:
            self._end_line()
            self._stack.close()

    def _end_line(self) -> None:
        if self._line is not None:
            self._line.close()
        self._line = None

    def _show(self, runner: Runner, status: str) -> None:
        """Set the text of the line: the loss, a status, then the other numbers."""
        assert self._line is not None
        numbers = format_numbers(runner.message_hub.log_scalars, max(int(self._line.n), 1))
        self._line.set_postfix_str(', '.join([*numbers[:1], status, *numbers[1:]]), refresh=False)


def create_line(runner: Runner, is_live: bool) -> tqdm:
    """The line from the current iteration to the end of its epoch, or to the next validation.

    Only a line in a terminal (``is_live``) writes itself.
    """
    loop: Any = runner.train_loop
    by_epoch = isinstance(loop, EpochBasedTrainLoop)
    length = len(runner.train_dataloader) if by_epoch else loop.val_interval
    start = runner.iter // length * length
    end = min(start + length, runner.max_iters)
    layout = LAYOUT if get_terminal_size().columns >= BAR_COLUMNS else NARROW_LAYOUT
    return tqdm(
        desc=f'Epoch {runner.epoch + 1}/{runner.max_epochs}'
        if by_epoch
        else f'Iteration {end:,}/{runner.max_iters:,}',
        initial=runner.iter - start,
        total=end - start,
        bar_format=layout if is_live else PIPE_LAYOUT,
        dynamic_ncols=True,
        delay=0 if is_live else math.inf,
        file=sys.stdout,
    )


def format_numbers(scalars: Mapping[str, Any], steps: int) -> list[str]:
    """The loss, the images per second of the last ``steps`` and the learning rate, if known."""
    numbers = []
    if 'train/loss' in scalars:
        numbers.append(f'loss {scalars["train/loss"].mean(LOSS_WINDOW):.4g}')
    if 'train/images/s' in scalars:
        rates = scalars['train/images/s'].data[0][-steps:]
        rate = len(rates) / (1 / rates).sum()  # harmonic mean: all images per all seconds
        numbers.append(f'{rate:,.1f} images/s' if rate < SLOW else f'{rate:,.0f} images/s')
    for name in LR_SCALARS:
        if name in scalars:
            numbers.append(f'lr {scalars[name].current():.1e}')
            break
    return numbers


def format_metric(runner: Runner, metrics: Mapping[str, float]) -> str:
    """The metric that selects the best checkpoint, or the first metric, with its value."""
    numbers = to_per_cent(metrics)
    wanted: list[str] = []
    for hook in runner.hooks:
        # The metrics in `save_best` of a CheckpointHook.
        wanted += getattr(hook, 'key_indicators', ())
    name = next((name for name in numbers if name in wanted), next(iter(numbers), None))
    return 'validated' if name is None else f'{name.rpartition("/")[2]} {numbers[name]:.4g}'
