"""What the log says at the end of a training: its metrics, its files, and the next command."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mmengine.runner import Runner

from anyfolder.terminal import aligned
from vit_plugin.engine.validation_record import RESULTS_FILE, ValidationRecord

from .few_images import note_on_few_images
from .pictures.class_scores import make_rows

FEW_CLASSES = 20  # the console shows the scores of at most this many classes


def training_summary(
    runner: Runner, record: ValidationRecord, scores: Mapping[str, Any] | None
) -> str:
    """The lines for the log.

    Args:
        runner: the run.
        record: its record.
        scores: the scores of each class, if they are known.
    """
    history = record.history
    tables = ['', *aligned(record.table(), numbers=True), ''] if history else ['']
    if scores and len(scores['per_class']) <= FEW_CLASSES:
        tables += [*aligned(make_rows(scores), numbers=True), '']
    note = note_on_few_images(_count_validated(runner), history, _saves_best(runner))
    lines = [
        f'Trained in {record.seconds:.0f} s.',
        *tables,
        *filter(None, [note]),
        f'Checkpoints, {RESULTS_FILE} and pictures are in {Path(runner.work_dir)}',
        f'Next: vit-plugin {next_command(runner)}',
    ]
    return '\n'.join(lines)


def _count_validated(runner: Runner) -> int:
    return 0 if runner._val_loop is None else len(runner.val_dataloader.dataset)


def _saves_best(runner: Runner) -> bool:
    return any(getattr(hook, 'save_best', None) for hook in runner.hooks)


def next_command(runner: Runner) -> str:
    """The command to suggest after a run: predict an image of the data, or else test the model.

    After a pre-training it is a training, since no test says how to read an image.
    """
    loader = runner.train_dataloader if runner._val_loop is None else runner.val_dataloader
    dataset = getattr(loader.dataset, 'unseeded', loader.dataset)
    image = dataset.get_data_info(0).get('img_path') if hasattr(dataset, 'get_data_info') else None
    if not (image and Path(image).is_file()):
        return f'test {shlex.quote(runner.work_dir)}'
    if not runner.cfg.get('test_dataloader'):
        return f'train --data FOLDER --weights {shlex.quote(runner.work_dir)}'
    return f'infer {shlex.quote(runner.work_dir)} {shlex.quote(image)} --out pictures'
