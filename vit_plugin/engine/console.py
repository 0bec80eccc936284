"""Console output of a run: its summary, its scores, and what libraries print meanwhile."""

import io
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

from mmengine.dist import get_backend, get_world_size
from mmengine.evaluator import Evaluator
from mmengine.logging import MMLogger
from mmengine.runner import EpochBasedTrainLoop, LogProcessor, Runner

from anyfolder.wording import counted
from vit_plugin.data.dataset_facts import classes_of, count_shared_images

from .sharding import without_ddp
from .validation_record import to_per_cent

# Prefixes of messages that only the log file gets while ProgressHook shows the same numbers.
TRAIN_TAGS = ('Epoch(train)', 'Iter(train)')
SHOWN_LIVE = (  # in a terminal
    *TRAIN_TAGS,
    'Epoch(val)',
    'Iter(val)',
    'Saving checkpoint at',
    'The best checkpoint with',
    'per class results:',
    '+-',  # the table of per-class results
)
# Lines that pycocotools prints about its own steps.
CHATTER = (
    'loading annotations into memory',
    'Loading and preparing results',
    'Converting ndarray to lists',
    'creating index',
    'index created!',
    'Running per image evaluation',
    'Evaluate annotation type',
    'Accumulating evaluation results',
    'Done (t=',
    'DONE (t=',
)


@contextmanager
def redirect_prints_to(logger: logging.Logger) -> Iterator[None]:
    """Log what libraries print in this context, without the lines in :data:`CHATTER`."""
    printed = io.StringIO()
    try:
        with redirect_stdout(printed):
            yield
    finally:
        lines = [
            line
            for line in printed.getvalue().splitlines()
            if line and not line.startswith(CHATTER)
        ]
        if lines:
            logger.info('\n'.join(['', *lines]))


class LoggedEvaluator(Evaluator):
    """MMEngine's evaluator, which logs what metrics print, and gathers CPU results by collectives.

    MMEngine would exchange CPU results as pickles in a folder that all machines must share.
    """

    def evaluate(self, size: int) -> dict[str, Any]:
        if get_backend() == 'gloo':
            for metric in self.metrics:
                metric.collect_device = 'gpu'  # MMEngine's name for collectives, on any device
        with redirect_prints_to(MMLogger.get_current_instance()):
            return super().evaluate(size)


class PerCentLogProcessor(LogProcessor):
    """MMEngine's log processor, but all scores of a validation or test are in per cent."""

    def _collect_scalars(self, custom_cfg: list, runner: Runner, mode: str, *args: Any) -> dict:
        scalars: dict[str, Any] = super()._collect_scalars(custom_cfg, runner, mode, *args)
        return scalars if mode == 'train' else to_per_cent(scalars)


@contextmanager
def without_stderr() -> Iterator[None]:
    """Discard what is written to stderr in this context, by child processes too.

    MMEngine asks a shell for a C compiler, and the shell complains if there is none.
    """
    saved = os.dup(2)
    with open(os.devnull, 'w') as null:
        os.dup2(null.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)


def run_summary(runner: Runner) -> str:
    """Describe a run: a line each for the model, data, length, device and path of the log."""
    model = without_ddp(runner.model)
    parameters = list(model.parameters())
    trainable = sum(parameter.numel() for parameter in parameters if parameter.requires_grad)
    total = sum(parameter.numel() for parameter in parameters)
    class_names = [
        type(module).__name__
        for module in (model, getattr(model, 'backbone', None))
        if module is not None
    ]
    trainable_note = f', {trainable / 1e6:.2f} M of them trained' if trainable < total else ''
    data = runner.train_dataloader.dataset
    classes = classes_of(data)
    validation_note = ''
    if runner._val_loop is not None:
        validation_note = f', {describe_validation_images(runner.val_dataloader.dataset, data)}'
    processes, batch_size = get_world_size(), runner.train_dataloader.batch_size
    epochs = (
        f' in {counted(runner.max_epochs, "epoch")}'
        if isinstance(runner.train_loop, EpochBasedTrainLoop)
        else ''
    )
    device = parameters[0].device if parameters else 'cpu'
    precision = str(getattr(runner.optim_wrapper, 'cast_dtype', None) or 'float32').removeprefix(
        'torch.'
    )
    log_files = [
        handler.baseFilename
        for handler in runner.logger.handlers
        if isinstance(handler, logging.FileHandler)
    ]
    rows = {
        'Model': f'{" with ".join(class_names)}, {total / 1e6:.2f} M parameters{trainable_note}',
        'Data': f'{len(data):,} images'
        + (f' of {counted(len(classes), "class")}' if classes else '')
        + validation_note,
        'Run': f'{runner.max_iters:,} iterations{epochs}'
        + (f', {batch_size * processes} images in each' if batch_size else ''),
        'Device': f'{device}, {precision}, {counted(processes, "process")}',
        'Log': ', '.join(log_files) or 'none',
    }
    return '\n'.join(f'{name + ":":<8} {text}' for name, text in rows.items())


def describe_validation_images(val: Any, train: Any) -> str:
    """The number of validation images in words, and how many are also trained on, if known."""
    shared = count_shared_images(val, train)
    if shared is None:
        return f'{len(val):,} to validate'
    if shared == 0:
        return f'{len(val):,} held out to validate'
    number = 'all' if shared >= len(val) else f'{shared:,}'
    return f'{len(val):,} to validate, {number} of them also trained on'
