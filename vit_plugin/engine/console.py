"""Console output of a run: the model, its data and its device. The log file has the rest."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager

from mmengine.dist import get_world_size
from mmengine.logging import MMLogger
from mmengine.runner import EpochBasedTrainLoop, Runner

from .sharding import unwrapped

# How messages begin that only the log file gets.
FILE_ONLY = (
    'System environment',
    'Config:',
    'Hooks will be executed',
    'paramwise_options -- ',
    'Groups of parameters:',
    'Distributed training is not used',
    'Checkpoints will be saved to',
    'Exp name: ',
    # False alarms: we compile nothing, MMEngine itself uses what it warns of, and mIoU has no
    # prefix by design.
    'Line NMS is not compiled',
    '"FileClient" will be deprecated',
    '"HardDiskBackend" is the alias',
    'The prefix is not set in metric class',
    'bbox_mAP_copypaste',
    'segm_mAP_copypaste',
)  # which repeat the line of the validation


def is_for_the_console(record: logging.LogRecord) -> bool:
    """True if a message is of use to somebody who watches the run."""
    return not record.getMessage().lstrip('\n -').startswith(FILE_ONLY)


def quieten(logger: MMLogger) -> None:
    """Leave :data:`FILE_ONLY` to the files of a logger."""
    for handler in logger.handlers:
        if (
            not isinstance(handler, logging.FileHandler)
            and is_for_the_console not in handler.filters
        ):
            handler.addFilter(is_for_the_console)


@contextmanager
def without_stderr() -> Iterator[None]:
    """Discard what child processes write to stderr.

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


def summary(runner: Runner) -> str:
    """The model, its data, its device and the path of the log, in one line each."""
    model = unwrapped(runner.model)
    parameters = list(model.parameters())
    learning = sum(parameter.numel() for parameter in parameters if parameter.requires_grad)
    total = sum(parameter.numel() for parameter in parameters)
    parts = [
        type(part).__name__
        for part in (model, getattr(model, 'backbone', None))
        if part is not None
    ]
    frozen = f', of which {learning / 1e6:.2f} M learn' if learning < total else ''
    data = runner.train_dataloader.dataset
    classes = getattr(data, 'metainfo', {}).get('classes')
    held_out = len(runner.val_dataloader.dataset) if runner._val_loop is not None else 0
    processes, batch = get_world_size(), runner.train_dataloader.batch_size
    epochs = (
        f' in {runner.max_epochs} epoch{"s" * (runner.max_epochs > 1)}'
        if isinstance(runner.train_loop, EpochBasedTrainLoop)
        else ''
    )
    device = parameters[0].device if parameters else 'cpu'
    precision = str(getattr(runner.optim_wrapper, 'cast_dtype', None) or 'float32').removeprefix(
        'torch.'
    )
    files = [
        handler.baseFilename
        for handler in runner.logger.handlers
        if isinstance(handler, logging.FileHandler)
    ]
    rows = {
        'Model': f'{" with ".join(parts)}, {total / 1e6:.2f} M parameters{frozen}',
        'Data': f'{len(data):,} images'
        + (f' of {len(classes)} classes' if classes else '')
        + (f', {held_out:,} held out to validate' if held_out else ''),
        'Run': f'{runner.max_iters:,} iterations{epochs}'
        + (f', {batch * processes} images in each' if batch else ''),
        'Device': f'{device}, {precision}, {processes} process{"es" * (processes > 1)}',
        'Log': ', '.join(files) or 'none',
    }
    return '\n'.join(f'{name + ":":<8} {text}' for name, text in rows.items())
