"""Duration and memory of a training on this machine, stated before its first step."""

import copy
import math
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from mmengine.hooks import CheckpointHook, Hook
from mmengine.registry import TRANSFORMS
from mmengine.runner import EpochBasedTrainLoop, Runner
from torch import nn

from anyfolder.cores import cores
from vit_plugin.engine.pace import validations
from vit_plugin.errors import ConfigError
from vit_plugin.report.pictures.data_pictures import preserved_rng

from .memory import TRACED_IMAGES, TrainingMemory

HOUR, MINUTE = 3600.0, 60.0  # seconds
# A batch grows until it takes ENOUGH_SECONDS, and a first step of LONG_SECONDS is not repeated.
ENOUGH_SECONDS, LONG_SECONDS = 0.5, 2.0
# A machine's speed varies over seconds, so more steps are timed: for this share of the training,
# and at most MOST_SECONDS.
TIMED_SHARE, MOST_SECONDS = 0.03, 5.0
SEEN = 448**2  # pixels of an image; up to this size, memory is measured at full size
SIZE_ARGUMENTS = {'scale', 'crop_size'}  # arguments of the steps that resize or cut images
# Seconds that a few batches do not show, on two cores: those of an epoch, whose data workers begin
# anew and whose metrics are recorded, and those of the end of a run, which draws pictures and frees
# its memory.
EPOCH_SECONDS, END_SECONDS = 0.1, 12.0
FEWEST_PIXELS = 64  # smallest side to propose


class DurationHook(Hook):
    """Logs the memory and the duration of the training and, over an hour, how to shorten it.

    It traces the memory of a step of two images, see :class:`~.memory.TrainingMemory`, and times
    steps of a copy of the model and its optimizer on the first images, with more and more of them
    until a step takes half a second or has a whole batch. The run stays bit-identical: the copy is
    dropped, and the random generators are restored. Runs with several processes and compiled runs
    are not estimated.

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
                except Exception:  # noqa: BLE001  what is wrong with the data, the run says
                    pass


def log_memory(runner: Runner) -> None:
    """Log the memory of a run, see :meth:`.memory.TrainingMemory.log`."""
    estimate_memory(runner).log(runner.logger, runner.train_dataloader.batch_size)


def log_duration(runner: Runner) -> None:
    """Log how long a run takes."""
    runner.logger.info(describe_duration(runner, forecast(runner)))


def compute_gradients(runner: Runner, model: Any, batch: Any) -> None:
    """Run a step up to the gradients."""
    optim_wrapper: Any = runner.optim_wrapper
    with optim_wrapper.optim_context(model):
        losses = model._run_forward(model.data_preprocessor(batch, training=True), mode='loss')
    model.parse_losses(losses)[0].backward()


def estimate_memory(runner: Runner) -> TrainingMemory:
    """The memory of a run.

    Images of more than :data:`SEEN` pixels would take minutes. Their memory is extrapolated
    linearly from two smaller sizes.
    """
    loader: Any = runner.train_dataloader
    images = min(TRACED_IMAGES, loader.batch_size, len(loader.dataset))

    def measure(batch: Any) -> TrainingMemory:
        return TrainingMemory(runner.model, partial(compute_gradients, runner), batch, images)

    whole = first_batch(loader, images)
    pixels = pixels_per_image(runner, whole)
    share = math.sqrt(SEEN / pixels)
    if share >= 1 or 'pipeline' not in runner.cfg.train_dataloader.dataset:
        return measure(whole)
    batches = [first_scaled_batch(runner, loader, images, part) for part in (share / 2, share)]
    few, many = (pixels_per_image(runner, batch) for batch in batches)
    if few == many:  # padded to one size
        return measure(whole)
    at_small, at_large = map(measure, batches)
    for_a_pixel = (at_large.per_image - at_small.per_image) / (many - few)
    at_large.per_image += (pixels - many) * for_a_pixel
    return at_large


def pixels_per_image(runner: Runner, batch: Any) -> int:
    """The pixels of an image in a batch at the model's input; 0 for several views."""
    preprocessor: Any = runner.model.data_preprocessor
    inputs = preprocessor(copy.deepcopy(batch), training=True)['inputs']
    return inputs.shape[-2:].numel() if isinstance(inputs, torch.Tensor) else 1


def first_scaled_batch(runner: Runner, loader: Any, images: int, share: float) -> Any:
    """The first batch, with images scaled by this factor."""
    steps = copy.deepcopy(runner.cfg.train_dataloader.dataset.pipeline)
    for step in steps:
        for key in SIZE_ARGUMENTS & step.keys():
            if np.min(step[key]) > 1:  # smaller values are fractions of an image
                sides = np.broadcast_to(step[key], 2)
                step[key] = tuple(max(int(share * side), 1) for side in sides)
    whole = loader.dataset.pipeline
    mixes = hasattr(loader.dataset, 'pipeline_types')  # MMDetection's MultiImageMixDataset
    loader.dataset.pipeline = [*map(TRANSFORMS.build, steps)] if mixes else type(whole)(steps)
    try:
        return first_batch(loader, images)
    finally:
        loader.dataset.pipeline = whole


def forecast(runner: Runner) -> float:
    """The seconds that remain of a run. Its loops must be built."""
    model: Any
    # Copied together, the optimizer steps the parameters of the copy.
    model, optim_wrapper = copy.deepcopy((runner.model, runner.optim_wrapper))
    learn_from = partial(model.train_step, optim_wrapper=optim_wrapper)
    steps = runner.max_iters - runner.iter
    seconds = time_batches(steps, runner.train_dataloader, learn_from, model.train())
    if runner._val_loop is not None:
        # Only SlicedValLoop has this method; the other loops call the model.
        by_slices = getattr(runner.val_loop, 'predict_slices', None)
        use = partial(by_slices, model) if by_slices else model.val_step
        with torch.no_grad():
            batches = validations(runner) * len(runner.val_dataloader)
            seconds += time_batches(batches, runner.val_dataloader, use, model.eval())
    state = dict(state_dict=model.state_dict(), optimizer=optim_wrapper.state_dict())
    seconds += count_saves(runner) * time_call(torch.save, state, os.devnull)[1]
    if isinstance(runner.train_loop, EpochBasedTrainLoop):
        seconds += (runner.max_epochs - runner.epoch) * EPOCH_SECONDS
    return seconds + END_SECONDS


def count_saves(runner: Runner) -> int:
    """The number of checkpoints left, without the last."""
    hooks = [hook for hook in runner.hooks if isinstance(hook, CheckpointHook)]
    left = {True: runner.max_epochs - runner.epoch, False: runner.max_iters - runner.iter}
    return sum(left[hook.by_epoch] // hook.interval for hook in hooks if hook.interval > 0)


def time_batches(batches: int, loader: Any, use: Callable[[Any], Any], model: nn.Module) -> float:
    """Seconds of so many batches: reading them, and their use by the model."""
    whole = min(loader.batch_size or 1, len(loader.dataset))
    images, using = 1, 0.0
    while not using or (images < whole and using < ENOUGH_SECONDS):
        images = min(2 * images, whole)
        batch, reading = time_call(first_batch, loader, images)
        using = time_use(use, batch, model)
        # The first call also prepared caches for its shape. Another batch may have another shape.
        if using < LONG_SECONDS:
            using = time_use(use, first_batch(loader, images), model)
    spent, timed = using, 1
    while spent < min(TIMED_SHARE * batches * using, MOST_SECONDS):
        spent += time_use(use, batch, model)
        timed += 1
        using = spent / timed
    if next(model.parameters()).device.type == 'cpu':
        together = using + reading / cores()  # the data workers take cores from the model
    else:
        together = max(using, reading / max(loader.num_workers, 1))
    return batches * together * whole / images


def time_use(use: Callable[[Any], Any], batch: Any, model: nn.Module) -> float:
    """Seconds per batch in the model."""
    model.zero_grad()
    # A copy, since the preprocessors of the frameworks change the samples.
    _, seconds = time_call(use, copy.deepcopy(batch))
    return seconds


def first_batch(loader: Any, images: int) -> Any:
    """The first images of a data loader, collated."""
    return loader.collate_fn([loader.dataset[i] for i in range(images)])


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
    if seconds <= HOUR:
        return text
    share, flags = HOUR / seconds, []
    side = np.max(runner.cfg.model.backbone.get('img_size') or 0)
    smaller = int(side * math.sqrt(share)) // 32 * 32  # time grows with the area
    if smaller >= FEWEST_PIXELS:
        flags.append(f'smaller images by --img-size {smaller}')
    if isinstance(runner.train_loop, EpochBasedTrainLoop):
        flags.append(f'fewer epochs by --epochs {max(int(runner.max_epochs * share), 1)}')
    return f'{text} About an hour: {" or ".join(flags)}.' if flags else text


def time_in_words(seconds: float) -> str:
    """Format a duration for people: 40 seconds, 2.5 minutes, 12 minutes, 3.5 hours."""
    if seconds < 2 * MINUTE:
        return f'{max(round(seconds), 2)} seconds'
    if seconds < 10 * MINUTE:
        return f'{seconds / MINUTE:.1f} minutes'
    if seconds < 2 * HOUR:
        return f'{seconds / MINUTE:.0f} minutes'
    return f'{seconds / HOUR:.1f} hours'
