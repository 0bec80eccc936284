"""The record that a training run leaves in its work directory."""

import json
import time
from collections.abc import Sequence
from numbers import Real
from pathlib import Path

import numpy as np
from mmengine.dist import collect_results, is_main_process
from mmengine.hooks import Hook
from mmengine.runner import EpochBasedTrainLoop, Runner

from vit_plugin.registry import HOOKS
from vit_plugin.visualization import draw_confusion_matrix, draw_learning_curve

RECORD = 'metrics.json'


@HOOKS.register_module()
class ReportHook(Hook):
    """Writes the metrics as JSON after each validation, and pictures at the end.

    In the work directory: ``metrics.json`` (every metric: last, largest, and at each (epoch or iteration, value);
    epochs, iterations, seconds and, for single-label classification, the confusion matrix of the last validation),
    ``learning_curve.png`` and ``confusion_matrix.png``. A resumed run goes on with its record.
    """

    priority = 'LOW'

    def before_train(self, runner: Runner) -> None:
        self._start = time.perf_counter()
        self._history: dict[str, list[tuple[int, float]]] = {}
        self._confusion: np.ndarray | None = None
        self._unit = 'epoch' if isinstance(runner.train_loop, EpochBasedTrainLoop) else 'iter'
        previous = Path(runner.work_dir, RECORD)
        if runner.iter and previous.is_file():  # resumed
            record = json.loads(previous.read_text())
            self._start -= record['seconds']
            for name, points in record['history'].items():
                self._history[name] = [(step, value) for step, value in points if step <= self._step(runner)]

    def _step(self, runner: Runner) -> int:
        return getattr(runner, self._unit)

    def before_val_epoch(self, runner: Runner) -> None:
        self._labels: list[tuple[int, int]] = []

    def after_val_iter(self, runner: Runner, batch_idx: int, data_batch: dict | None = None,
                       outputs: Sequence | None = None) -> None:
        for sample in outputs or ():
            labels = [sample.get(name) for name in ('gt_label', 'pred_label')]
            if all(label is not None and label.numel() == 1 for label in labels):
                self._labels.append(tuple(map(int, labels)))

    def after_val_epoch(self, runner: Runner, metrics: dict[str, float] | None = None) -> None:
        labels = collect_results(self._labels, len(runner.val_dataloader.dataset), device='gpu')
        if not is_main_process() or not hasattr(self, '_start'):  # a validation outside training
            return
        for name, value in (metrics or {}).items():
            if isinstance(value, Real):  # MMSegmentation's are numpy's
                self._history.setdefault(name, []).append((self._step(runner), float(value)))
        if labels:
            self._classes = runner.val_dataloader.dataset.metainfo.get('classes')
            classes = len(self._classes or ()) or np.max(labels) + 1
            self._confusion = np.zeros((classes, classes), dtype=int)
            np.add.at(self._confusion, tuple(np.transpose(labels)), 1)
        self._write_metrics(runner)

    def after_train(self, runner: Runner) -> None:
        if not is_main_process() or not self._history:
            return
        folder = Path(runner.work_dir)
        scalars = runner.message_hub.log_scalars
        loss = np.asarray(scalars['train/loss'].data[0]) if 'train/loss' in scalars else np.empty(0)
        draw_learning_curve(loss, runner.iter / max(self._step(runner), 1), self._history, self._unit).savefig(
            folder / 'learning_curve.png')
        if self._confusion is not None:
            draw_confusion_matrix(self._confusion, self._classes).savefig(folder / 'confusion_matrix.png')
        last = ', '.join(f'{name} {values[-1][1]:.4g}' for name, values in self._history.items())
        runner.logger.info(f'Trained in {time.perf_counter() - self._start:.0f} s: {last}. '
                           f'Checkpoint, metrics.json and pictures are in {folder}')

    def _write_metrics(self, runner: Runner) -> None:
        record = dict(
            last={name: points[-1][1] for name, points in self._history.items()},
            max={name: max(value for _, value in points) for name, points in self._history.items()},
            history=self._history,
            epochs=runner.epoch,
            iterations=runner.iter,
            seconds=round(time.perf_counter() - self._start, 1),
            confusion_matrix=None if self._confusion is None else self._confusion.tolist())
        Path(runner.work_dir, RECORD).write_text(json.dumps(record) + '\n')
