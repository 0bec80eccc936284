"""Record a training run in its work directory."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from mmengine.dist import is_main_process
from mmengine.hooks import Hook
from mmengine.runner import Runner

from anyfolder.complete import write_text
from vit_plugin.engine.sharding import without_ddp
from vit_plugin.engine.validation_record import ValidationRecord
from vit_plugin.errors import MissingExtraError, named_line
from vit_plugin.files.untrusted_text import as_csv
from vit_plugin.inference.prepared_image import rgb_pixels
from vit_plugin.registry import HOOKS

from .collected_outcomes import CollectedOutcomes
from .outcomes import Outcomes
from .pictures import draw_learning_curve
from .pictures.class_scores import scores_as_markdown
from .pictures.data_pictures import copy_dataset, data_figures, file_of, preserved_rng
from .pictures.figure_files import save_figure
from .pictures.image_grid import GRID_COLUMNS, draw_grid
from .pictures_hook import log_image
from .training_summary import training_summary

CLASS_TABLES = 'classes'  # file name of the tables by class, without suffix


@HOOKS.register_module()
class ReportHook(Hook):
    """Writes pictures of the data, metrics after each validation, and pictures of the results.

    The files in the work directory (see docs/tools.md) are:

    - ``labels.png`` and ``train_batch.png``, see :func:`~vit_plugin.report.pictures.draw_data`,
    - ``metrics.json``, and ``results.csv`` with a row for each epoch or validation,
    - ``classes.json``, ``.csv`` and ``.md``: the scores of each class,
    - ``learning_curve.png``, ``confusion_matrix.png`` and, for a detector,
      ``precision_recall.png``,
    - ``val_predictions.png``, ``val_worst.png`` and ``val_best.png``: images with their ground
      truth and predictions.

    The pictures are also logged by the other ``vis_backends``. All scores are in per cent, also
    those of MMDetection, which computes shares. ``metrics.json`` has the last and the best value of
    every metric, and its ``history`` of pairs (epoch or iteration, value). It also has the epochs,
    iterations and seconds of the run, and the seconds at each validation. The scores of classes and
    the confusion matrix are those of the last validation; for a detector, they are computed only at
    the end of the run. A resumed run continues the record of its checkpoint.

    Args:
        pictures: whether images of the data are drawn.
    """

    # After the LoggerHook and before the CheckpointHook, which saves the record.
    priority = 'LOW'
    _resumed_record: Mapping[str, Any] = {}

    def __init__(self, pictures: bool = True) -> None:
        self.pictures = pictures
        self._record: ValidationRecord | None = None
        self._outcomes: Outcomes | None = None
        self._logged_errors: set[str] = set()  # about missing packages

    def after_load_checkpoint(self, runner: Runner, checkpoint: dict[str, Any]) -> None:
        self._resumed_record = checkpoint.get('report', {}) if runner._resume else {}

    def before_train(self, runner: Runner) -> None:
        self._record = ValidationRecord(runner, self._resumed_record)
        self._scores: dict[str, Any] | None = None
        self._confusion: np.ndarray | None = None
        if self.pictures and not self._record.rows:
            self._draw(runner, 'images to train on', self._data_figures(runner))

    def _data_figures(self, runner: Runner) -> Iterator[tuple[str, Figure]]:
        """Draw the data. All processes do so, since a preprocessor may communicate."""
        held_out = None if runner._val_loop is None else runner.val_dataloader.dataset
        preprocessor = getattr(without_ddp(runner.model), 'data_preprocessor', None)
        loader = runner.train_dataloader
        yield from data_figures(loader.dataset, held_out, preprocessor, loader.collate_fn)

    def before_save_checkpoint(self, runner: Runner, checkpoint: dict[str, Any]) -> None:
        if self._record is not None:
            checkpoint['report'] = self._record.state()

    def after_train_epoch(self, runner: Runner) -> None:
        if self._record is not None and self._record.unit == 'epoch':
            self._record.add(runner, {}, uncounted_epochs=1)
            if is_main_process():
                self._record.write_table(runner)

    def before_val_epoch(self, runner: Runner) -> None:
        self._outcomes, self._collected = None, CollectedOutcomes()

    def after_val_iter(
        self,
        runner: Runner,
        batch_idx: int,
        data_batch: dict | None = None,
        outputs: Sequence | None = None,
    ) -> None:
        samples = outputs or ()
        self._try(runner, 'what the validation found', lambda: self._collected.add(runner, samples))

    def after_val_epoch(self, runner: Runner, metrics: dict[str, float] | None = None) -> None:
        self._outcomes = self._collected.gather(runner)
        if not is_main_process() or self._record is None:  # validation outside a training
            return
        self._record.add(runner, metrics or {})
        self._scores = self._confusion = None
        if self._outcomes is not None and not self._outcomes.expensive:
            self._try(runner, 'scores by class', self._score)
        self._record.write(runner, self._scores, self._confusion)

    def _score(self) -> None:
        """Compute the scores and the confusion matrix of the last validation."""
        assert self._outcomes is not None
        self._scores = self._outcomes.scores()
        try:
            self._confusion = self._outcomes.confusion_matrix()
        except MissingExtraError:  # reported once after the run, where the pictures are drawn
            self._confusion = None

    def after_train(self, runner: Runner) -> None:
        record = self._record
        if not is_main_process() or record is None or not record.rows:
            return
        folder, unit, history = Path(runner.work_dir), record.unit, record.history
        if self._outcomes is not None:
            if self._scores is None:
                self._try(runner, 'scores by class', self._score)
            record.write(runner, self._scores, self._confusion)
            self._write_classes(folder)
        scalars = runner.message_hub.log_scalars
        loss = np.asarray(scalars['train/loss'].data[0]) if 'train/loss' in scalars else np.empty(0)
        per_step = runner.iter / max(getattr(runner, unit), 1)
        self._save(runner, 'learning_curve', draw_learning_curve(loss, per_step, history, unit))
        if self._outcomes is not None:
            self._draw(runner, 'the curves', self._outcomes.figures())
            if self.pictures:
                self._draw(runner, 'images to validate', _pages(runner, self._outcomes))
        runner.logger.info(training_summary(runner, record, self._scores))

    def _draw(self, runner: Runner, what: str, figures: Iterable[tuple[str, Figure]]) -> None:
        """Save figures as they are made, as far as :meth:`_try` allows."""

        def save() -> None:
            for name, figure in figures:
                self._save(runner, name, figure)

        self._try(runner, what, save)

    def _try(self, runner: Runner, what: str, action: Callable[[], Any]) -> None:
        """Do a part of the report. If that fails, log why, and let the training go on without it.

        ``what`` names that part in messages.
        """
        try:
            action()
        except MissingExtraError as error:
            if f'{error}' not in self._logged_errors:
                runner.logger.info(f'{error} The run goes on without {what}.')
            self._logged_errors.add(f'{error}')
        except Exception as error:  # noqa: BLE001  hours of training are worth more than a picture
            runner.logger.warning(f'The report lacks {what}: {named_line(error)}.')

    def _save(self, runner: Runner, name: str, figure: Figure) -> None:
        """Write a figure to the work directory, and log it, in the main process only."""
        if is_main_process():
            save_figure(figure, Path(runner.work_dir, f'{name}.png'))
            log_image(runner, name, figure)

    def _write_classes(self, folder: Path) -> None:
        if self._scores is None:
            return
        write_text(folder / f'{CLASS_TABLES}.json', json.dumps(self._scores, indent=1) + '\n')
        write_text(folder / f'{CLASS_TABLES}.csv', as_csv(self._scores['per_class']))
        write_text(folder / f'{CLASS_TABLES}.md', scores_as_markdown(self._scores))


def _pages(runner: Runner, outcomes: Outcomes) -> Iterator[tuple[str, Figure]]:
    """Figures of validation images with their ground truth and predictions, by file name."""
    dataset = copy_dataset(runner.val_dataloader.dataset)
    for name, (heading, positions) in outcomes.pages().items():
        with preserved_rng(0):
            items = [(position, dataset[position]) for position in positions]
        panels = [
            panel._replace(file=file_of(item['data_samples']))
            for position, item in items
            for panel in outcomes.panels(position, rgb_pixels(item['inputs']))
        ]
        if panels:
            # Keep the panels of an image in one row.
            columns = GRID_COLUMNS - GRID_COLUMNS % outcomes.panels_per_image
            yield name, draw_grid(panels, outcomes.classes, heading, columns)
