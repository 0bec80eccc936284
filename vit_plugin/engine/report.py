"""Record a training run in its work directory."""

import json
import time
from collections.abc import Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from mmengine.dist import collect_results, is_main_process
from mmengine.hooks import Hook
from mmengine.runner import EpochBasedTrainLoop, Runner

from vit_plugin.files.complete import replacing, write_text
from vit_plugin.registry import HOOKS
from vit_plugin.visualization import draw_confusion_matrix, draw_learning_curve
from vit_plugin.visualization.class_scores import as_markdown, class_scores

from .pictures import log_image

RECORD = 'metrics.json'


@HOOKS.register_module()
class ReportHook(Hook):
    """Writes the metrics as JSON after each validation, and pictures at the end.

    The files in the work directory are ``metrics.json``, ``classes.md``, ``learning_curve.png`` and
    ``confusion_matrix.png``. The pictures are also images in the other logs of ``vis_backends``.
    ``metrics.json`` has the last and the largest value of every metric, and all its (epoch or iteration, value). It
    also has the epochs, iterations and seconds, and the seconds at each validation. For single-label classification it
    has the confusion matrix of the last validation, and precision, recall and F1 by class, as their mean and of all
    samples, which are also the table ``classes.md``. A resumed run continues the record of its checkpoint.
    """

    priority = 'LOW'
    _resumed: Mapping[str, Any] = {}

    def after_load_checkpoint(self, runner: Runner, checkpoint: dict[str, Any]) -> None:
        self._resumed = checkpoint.get('report', {}) if runner._resume else {}

    def before_train(self, runner: Runner) -> None:
        self._start = time.perf_counter() - self._resumed.get('seconds', 0.)
        self._history: dict[str, list[tuple[int, float]]] = dict(self._resumed.get('history', {}))
        self._clock: list[tuple[int, float]] = list(self._resumed.get('clock', ()))
        self._confusion: np.ndarray | None = None
        self._unit = 'epoch' if isinstance(runner.train_loop, EpochBasedTrainLoop) else 'iter'

    def _step(self, runner: Runner) -> int:
        return getattr(runner, self._unit)

    def _seconds(self) -> float:
        return round(time.perf_counter() - self._start, 1)

    def before_save_checkpoint(self, runner: Runner, checkpoint: dict[str, Any]) -> None:
        if hasattr(self, '_start'):
            checkpoint['report'] = dict(history=dict(self._history), clock=self._clock, seconds=self._seconds())

    def before_val_epoch(self, runner: Runner) -> None:
        self._labels: list[tuple[int, int]] = []

    def after_val_iter(self, runner: Runner, batch_idx: int, data_batch: dict | None = None,
                       outputs: Sequence | None = None) -> None:
        for sample in outputs or ():
            true, predicted = (sample.get(name) for name in ('gt_label', 'pred_label'))
            if all(label is not None and label.numel() == 1 for label in (true, predicted)):
                self._labels.append((int(true), int(predicted)))

    def after_val_epoch(self, runner: Runner, metrics: dict[str, float] | None = None) -> None:
        labels = collect_results(self._labels, len(runner.val_dataloader.dataset), device='gpu')
        if not is_main_process() or not hasattr(self, '_start'):  # a validation without training
            return
        for name, value in (metrics or {}).items():
            if isinstance(value, Real):  # MMSegmentation's metrics are numpy numbers
                before = [point for point in self._history.get(name, []) if point[0] < self._step(runner)]
                self._history[name] = [*before, (self._step(runner), float(value))]  # it may be a repetition
        before = [point for point in self._clock if point[0] < self._step(runner)]
        self._clock = [*before, (self._step(runner), self._seconds())]
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
        pictures = dict(learning_curve=draw_learning_curve(
            loss, runner.iter / max(self._step(runner), 1), self._history, self._unit))
        if self._confusion is not None:
            pictures['confusion_matrix'] = draw_confusion_matrix(self._confusion, self._classes)
            write_text(folder / 'classes.md', as_markdown(class_scores(self._confusion, self._classes)))
        for name, figure in pictures.items():
            with replacing(folder / f'{name}.png') as path:
                figure.savefig(path)
            log_image(runner, name, figure)
        last = ', '.join(f'{name} {values[-1][1]:.4g}' for name, values in self._history.items())
        runner.logger.info(f'Trained in {time.perf_counter() - self._start:.0f} s: {last}. '
                           f'Checkpoint, metrics.json and pictures are in {folder}\n'
                           f'Next: vit-plugin test {folder}')

    def _write_metrics(self, runner: Runner) -> None:
        record = dict(
            last={name: points[-1][1] for name, points in self._history.items()},
            max={name: max(value for _, value in points) for name, points in self._history.items()},
            history=self._history,
            epochs=runner.epoch,
            iterations=runner.iter,
            seconds=self._seconds(),
            clock=self._clock,
            scores=None if self._confusion is None else class_scores(self._confusion, self._classes),
            confusion_matrix=None if self._confusion is None else self._confusion.tolist())
        write_text(Path(runner.work_dir, RECORD), json.dumps(record) + '\n')
