"""The record of a run: its losses and metrics at each epoch and validation.

The report hook keeps it, and writes it to ``metrics.json`` and ``results.csv``.
"""

import json
import math
import time
from collections.abc import Mapping
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from mmengine.runner import EpochBasedTrainLoop, Runner

from anyfolder.complete import write_text
from vit_plugin.files.untrusted_text import as_csv

RECORD = 'metrics.json'
RESULTS_FILE = 'results.csv'
# Prefixes of MMDetection's metrics, which are from 0 to 1.
FRACTION_PREFIXES = frozenset(('coco', 'pascal_voc', 'lvis', 'openimages', 'crowd_human'))
UNDEFINED_AP = -1  # MMDetection's value of an AP without objects
POSITION_COLUMNS = ('epoch', 'iter', 'seconds')  # first columns of a row
TRAINING_PREFIX = 'train/'  # prefix of losses and rates, which are not metrics


class ValidationRecord:
    """A row for each epoch or validation: position, training since the previous row, metrics.

    Args:
        runner: the run.
        resumed: the result of :meth:`state` when the run was saved.

    Attributes:
        unit: what the run counts, ``'epoch'`` or ``'iter'``.
        rows: the rows.
        lower_is_better: names of the metrics that are errors, which metric classes list in their
            attribute ``lower_is_better``.
    """

    def __init__(self, runner: Runner, resumed: Mapping[str, Any]) -> None:
        self.unit = 'epoch' if isinstance(runner.train_loop, EpochBasedTrainLoop) else 'iter'
        self.rows: list[dict[str, Any]] = list(resumed.get('rows', ()))
        evaluator = getattr(runner.val_loop, 'evaluator', None)
        self.lower_is_better = {
            name
            for metric in getattr(evaluator, 'metrics', ())
            for name in getattr(metric, 'lower_is_better', ())
        }
        self._start = time.perf_counter() - resumed.get('seconds', 0.0)

    @property
    def seconds(self) -> float:
        """Seconds of the run, with those before it was resumed."""
        return round(time.perf_counter() - self._start, 1)

    def state(self) -> dict[str, Any]:
        """The state that a checkpoint keeps."""
        return dict(rows=self.rows, seconds=self.seconds)

    def add(self, runner: Runner, metrics: Mapping[str, Any], uncounted_epochs: int = 0) -> None:
        """Add the row of an epoch or a validation. It replaces rows from this position on.

        Args:
            runner: the run.
            metrics: the metrics of the validation.
            uncounted_epochs: 1 if the epoch has ended and MMEngine has not yet counted it.
        """
        position = dict(
            epoch=runner.epoch + uncounted_epochs, iter=runner.iter, seconds=self.seconds
        )
        self.rows = [row for row in self.rows if row[self.unit] < position[self.unit]]
        iterations = position['iter'] - (self.rows[-1]['iter'] if self.rows else 0)
        training, scalars = {}, runner.message_hub.log_scalars
        # `data` of a scalar is a pair: its values, and how many each is the mean of.
        if 'train/lr' in scalars:
            training['train/lr'] = float(scalars['train/lr'].data[0][-1])
        for name in scalars:
            if name.startswith(TRAINING_PREFIX) and 'loss' in name:
                training[name] = float(np.mean(scalars[name].data[0][-max(iterations, 1) :]))
        self.rows.append({**position, **training, **to_per_cent(metrics)})

    @property
    def history(self) -> dict[str, list[tuple[int, float]]]:
        """The points (epoch or iteration, value) of each metric."""
        history: dict[str, list[tuple[int, float]]] = {}
        for row in self.rows:
            for name in metric_names(row):
                history.setdefault(name, []).append((row[self.unit], row[name]))
        return history

    def table(self) -> list[list[str]]:
        """A row of titles, and one for each metric: last value, best value, and its position."""
        rows = [['', 'last', 'best', f'at {self.unit}']]
        for name, points in self.history.items():
            position, best = self._best(name, points)
            rows.append([name, f'{points[-1][1]:.2f}', f'{best:.2f}', str(position)])
        return rows

    def _best(self, name: str, points: list[tuple[int, float]]) -> tuple[int, float]:
        """The point (position, value) with the best value. NaN is worse than any number."""
        choose = min if name.rpartition('/')[2] in self.lower_is_better else max
        numbers = [point for point in points if not math.isnan(point[1])]
        return choose(numbers or points, key=lambda point: point[1])

    def write(self, runner: Runner, scores: Any, confusion: np.ndarray | None) -> None:
        """Write ``metrics.json`` and ``results.csv`` in the work directory.

        Args:
            runner: the run.
            scores: the scores of each class as plain values, or None.
            confusion: the confusion matrix, or None.
        """
        history = self.history
        record = dict(
            last={name: points[-1][1] for name, points in history.items()},
            best={name: self._best(name, points)[1] for name, points in history.items()},
            history=history,
            epochs=runner.epoch,
            iterations=runner.iter,
            seconds=self.seconds,
            clock=[(row[self.unit], row['seconds']) for row in self.rows if metric_names(row)],
            scores=scores,
            confusion_matrix=None if confusion is None else confusion.tolist(),
        )
        write_text(Path(runner.work_dir, RECORD), json.dumps(record) + '\n')
        self.write_table(runner)

    def write_table(self, runner: Runner) -> None:
        """Write ``results.csv``."""
        write_text(Path(runner.work_dir, RESULTS_FILE), as_csv(self.rows))


def metric_names(row: Mapping[str, Any]) -> list[str]:
    """The names of the metrics in a row."""
    return [
        name
        for name in row
        if name not in POSITION_COLUMNS and not name.startswith(TRAINING_PREFIX)
    ]


def to_per_cent(metrics: Mapping[str, Any]) -> dict[str, float]:
    """The metrics that are numbers, all in per cent.

    MMDetection's fractions are multiplied by 100. Its -1 for a metric without objects is left out.
    """
    percentages = {}
    for name, value in metrics.items():
        if isinstance(value, Real):  # MMSegmentation's metrics are numpy numbers
            is_fraction = not FRACTION_PREFIXES.isdisjoint(name.split('/')[:2])
            if not (is_fraction and value == UNDEFINED_AP):
                percentages[name] = round(100 * float(value), 4) if is_fraction else float(value)
    return percentages
