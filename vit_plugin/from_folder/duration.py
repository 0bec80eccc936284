"""Estimate and log the duration and memory of a training on this machine, before its first step."""

import copy
import math
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from mmengine.config import Config
from mmengine.hooks import CheckpointHook, Hook
from mmengine.runner import EpochBasedTrainLoop, Runner
from torch import nn

from anyfolder.cores import cores
from vit_plugin.engine.pace import count_validations
from vit_plugin.errors import ConfigError
from vit_plugin.report.pictures.data_pictures import preserved_rng

from .memory import estimate_memory
from .sample_batches import first_batch

HOUR, MINUTE = 3600.0, 60.0  # seconds
ENOUGH_SECONDS = 0.5  # a batch grows until its step takes that long
LONG_SECONDS = 2.0  # a first step that takes that long is not repeated
# A machine's speed varies over seconds, so more steps are timed: for this share of the training,
# and at most MAX_TIMED_SECONDS.
TIMED_SHARE, MAX_TIMED_SECONDS = 0.03, 5.0
# Seconds that a few batches do not show, measured on two cores. An epoch starts new data workers
# and records metrics; the end of a run draws pictures and frees memory.
EPOCH_SECONDS, END_SECONDS = 0.1, 12.0
MIN_PROPOSED_SIDE = 64  # pixels; smaller images are not proposed


class DurationHook(Hook):
    """Logs the memory and the duration of the training and, over an hour, how to shorten it.

    It traces the memory of a step of two images, see :mod:`.memory`. It times steps of a copy of
    the model and its optimizer on the first images, doubling their number until a step takes half a
    second or has a whole batch. The run stays bit-identical: the copy is dropped, and the random
    generators are restored. Runs with several processes and compiled runs are not estimated.

    Raises:
        ConfigError: if the training needs more memory than this machine or its GPU has.
    """

    priority = 'VERY_LOW'

    def before_train(self, runner: Runner) -> None:
        if runner.distributed or runner.cfg.get('compile'):
            return
        runner.logger.info('Measuring memory and time on a few images.')
        for log in (log_memory, log_duration):
            with preserved_rng():
                try:
                    log(runner)
                except ConfigError:
                    raise
                except Exception:  # noqa: BLE001  the run itself will report it
                    pass


def log_memory(runner: Runner) -> None:
    """Log the memory of a run, see :meth:`.memory.TrainingMemory.log`."""
    batch_size = runner.train_dataloader.batch_size
    estimate_memory(runner).log(runner.logger, batch_size, takes_img_size(runner.cfg))


def log_duration(runner: Runner) -> None:
    """Log how long a run is expected to take."""
    runner.logger.info(describe_duration(runner, forecast(runner)))


def forecast(runner: Runner) -> float:
    """The seconds that remain of a run. Its loops must be built."""
    model: Any
    # Copied together, the optimizer steps the parameters of the copy.
    model, optim_wrapper = copy.deepcopy((runner.model, runner.optim_wrapper))
    train = partial(model.train_step, optim_wrapper=optim_wrapper)
    steps = runner.max_iters - runner.iter
    seconds = time_batches(steps, runner.train_dataloader, train, model.train())
    if runner._val_loop is not None:
        # Only SlicedValLoop has this method; the other loops call the model.
        predict_slices = getattr(runner.val_loop, 'predict_slices', None)
        predict = partial(predict_slices, model) if predict_slices else model.val_step
        with torch.no_grad():
            batches = count_validations(runner) * len(runner.val_dataloader)
            seconds += time_batches(batches, runner.val_dataloader, predict, model.eval())
    state = dict(state_dict=model.state_dict(), optimizer=optim_wrapper.state_dict())
    seconds += count_saves(runner) * time_call(torch.save, state, os.devnull)[1]
    if isinstance(runner.train_loop, EpochBasedTrainLoop):
        seconds += (runner.max_epochs - runner.epoch) * EPOCH_SECONDS
    return seconds + END_SECONDS


def count_saves(runner: Runner) -> int:
    """The number of checkpoints that the run still saves: at its intervals, and at the end."""
    count = 0
    for hook in runner.hooks:
        if not isinstance(hook, CheckpointHook):
            continue
        if hook.by_epoch:
            done, last = runner.epoch, runner.max_epochs
        else:
            done, last = runner.iter, runner.max_iters
        saved = {last} if hook.save_last else set[int]()
        if hook.interval > 0:  # -1: only the last
            saved.update(range(hook.save_begin, last + 1, hook.interval))
        count += sum(position > done for position in saved)
    return count


def time_batches(batches: int, loader: Any, use: Callable[[Any], Any], model: nn.Module) -> float:
    """Estimate the seconds for a number of batches.

    Args:
        batches: their number.
        loader: the data loader; its data set is read in this process.
        use: runs the model on a batch.
        model: the model, whose gradients are reset.
    """
    batch_size = min(loader.batch_size or 1, len(loader.dataset))
    images, use_seconds = 1, 0.0
    while not use_seconds or (images < batch_size and use_seconds < ENOUGH_SECONDS):
        images = min(2 * images, batch_size)
        batch, read_seconds = time_call(first_batch, loader, images)
        use_seconds = time_use(use, batch, model)
        # The first call also prepared caches for its shape. Another batch may have another shape.
        if use_seconds < LONG_SECONDS:
            use_seconds = time_use(use, first_batch(loader, images), model)
    spent, timed = use_seconds, 1
    while spent < min(TIMED_SHARE * batches * use_seconds, MAX_TIMED_SECONDS):
        spent += time_use(use, batch, model)
        timed += 1
        use_seconds = spent / timed
    if next(model.parameters()).device.type == 'cpu':
        seconds = use_seconds + read_seconds / cores()  # data workers take cores from the model
    else:
        seconds = max(use_seconds, read_seconds / max(loader.num_workers, 1))
    return batches * seconds * batch_size / images


def time_use(use: Callable[[Any], Any], batch: Any, model: nn.Module) -> float:
    """The seconds that the model takes for a batch."""
    model.zero_grad()
    # A copy, since the preprocessors of the frameworks change the samples.
    _, seconds = time_call(use, copy.deepcopy(batch))
    return seconds


def time_call(function: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    """The result of a function, and its seconds."""
    start = time.perf_counter()
    result = function(*arguments)
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return result, time.perf_counter() - start


def describe_duration(runner: Runner, seconds: float) -> str:
    """A sentence about the duration and, over an hour, flags that reduce it to about an hour."""
    text = f'The training takes about {time_in_words(seconds)} on this machine.'
    # A resumed run keeps the flags that it began with.
    if seconds <= HOUR or getattr(runner.train_loop, 'epoch', None):
        return text
    share, flags = HOUR / seconds, []
    side = np.max(runner.cfg.model.backbone.get('img_size') or 0)
    smaller = int(side * math.sqrt(share)) // 32 * 32  # time grows with the area
    if smaller >= MIN_PROPOSED_SIDE and takes_img_size(runner.cfg):
        flags.append(f'smaller images by --img-size {smaller}')
    by_epoch = isinstance(runner.train_loop, EpochBasedTrainLoop)
    if epochs := int(runner.max_epochs * share) if by_epoch else 0:
        flags.append(f'fewer epochs by --epochs {epochs}')
    return f'{text} About an hour: {" or ".join(flags)}.' if flags else text


def takes_img_size(cfg: Config) -> bool:
    """Whether ``--img-size`` fits a config. A complete segmentor keeps the size of its weights."""
    is_complete = bool(cfg.get('load_from')) and 'decode_head' in cfg.model
    is_of_depth = str(cfg.model.get('type')).endswith('DepthEstimator')
    return is_of_depth or not is_complete


def time_in_words(seconds: float) -> str:
    """Format a duration for people: 40 seconds, 2.5 minutes, 12 minutes, 3.5 hours."""
    if seconds < 2 * MINUTE:
        return f'{max(round(seconds), 2)} seconds'
    if seconds < 10 * MINUTE:
        return f'{seconds / MINUTE:.1f} minutes'
    if seconds < 2 * HOUR:
        return f'{seconds / MINUTE:.0f} minutes'
    return f'{seconds / HOUR:.1f} hours'
