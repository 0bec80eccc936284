"""Count unreadable samples, and leave them out of evaluations."""

from collections.abc import Sequence, Set
from pathlib import Path
from typing import Any

import torch
from mmengine.dist import all_gather_object, all_reduce, barrier, get_world_size, is_main_process
from mmengine.evaluator import BaseMetric
from mmengine.hooks import Hook
from mmengine.runner import BaseLoop, Runner

from vit_plugin.arguments.fields import Fraction
from vit_plugin.data.positioned import find_positioned_sampler
from vit_plugin.data.unreadable import LISTS, UnreadableFile, UnreadableList
from vit_plugin.errors import ConfigError
from vit_plugin.registry import HOOKS

# Smallest denominator of the share, so that one unreadable file at the start is not a large share.
AT_LEAST = 1000
INTERVAL = 50  # iterations


@HOOKS.register_module()
class UnreadableHook(Hook):
    """Counts unreadable samples, and ends training when they exceed a given share.

    Each is replaced by another sample, drawn by the position. In validation and test, the
    predictions for replacements are left out of the metrics. Each file is logged, and listed in the
    work directory: in ``unreadable.txt`` those to train on, in ``unreadable_val.txt`` and
    ``unreadable_test.txt`` those of the last validation and test. Our runner has this hook by
    itself; ``unreadable=dict(max_share=...)`` in the config sets it.

    Args:
        max_share: largest share of the training samples so far, or of 1,000 samples at the start. 0
            ends a training, validation or test at the first one.

    Attributes:
        left_out: the positions that the current or last validation or test leaves out.

    Raises:
        ConfigError: in all processes, if the share is exceeded, or if a metric does not keep a
            result for each sample, so that none can be left out.
    """

    priority = 'BELOW_NORMAL'  # before the report, which leaves out the same samples

    def __init__(self, max_share: Fraction = 0.01) -> None:
        self.max_share = max_share
        self.left_out: frozenset[int] = frozenset()
        self._logged: set[UnreadableFile] = set()

    def open_list(self, runner: Runner, part: str) -> UnreadableList | None:
        """The list of a split, ``'train'``, ``'val'`` or ``'test'``.

        None if unreadable samples are errors.
        """
        return UnreadableList(Path(runner.work_dir, LISTS[part])) if self.max_share else None

    def before_train(self, runner: Runner) -> None:
        self._list = UnreadableList(Path(runner.work_dir, LISTS['train']))
        if not runner.iter:
            _remove_list(self._list)
        sampler = find_positioned_sampler(runner.train_dataloader)
        self._batch = sampler.samples * get_world_size() if sampler else None

    def after_train_iter(self, runner: Runner, *args: Any, **kwargs: Any) -> None:
        last = runner.iter + 1 == runner.max_iters
        if self._batch and (self.every_n_train_iters(runner, INTERVAL) or last):
            self._check(runner, (runner.iter + 1) * self._batch)

    def _check(self, runner: Runner, seen: int) -> None:
        # Workers run ahead of the training.
        entries = [entry for entry in self._list.read() if entry.position < seen]
        if is_main_process():
            for entry in set(entries) - self._logged:
                runner.logger.warning(
                    f'{entry.path} cannot be read ({entry.reason}): another sample takes its place.'
                )
            self._logged.update(entries)
        worst = torch.tensor(float(len(entries)))
        all_reduce(worst, 'max')  # so that all processes end together
        if worst > self.max_share * max(seen, AT_LEAST):
            raise ConfigError(
                f'{int(worst)} of {seen} training samples could not be read, which is more than '
                f'unreadable.max_share={self.max_share}; they are listed in '
                f'{str(self._list.path)!r}: repair them or the path to the data, or give a larger '
                'share.'
            )

    def _before_epoch(self, runner: Runner, mode: str = 'train') -> None:
        """MMEngine's method before an epoch of training, validation or test."""
        if mode != 'train':
            self.left_out, self._evaluated = frozenset(), self.open_list(runner, mode)
            sampler = find_positioned_sampler(_loop(runner, mode).dataloader)
            if self._evaluated and sampler:
                sampler.begin(0, 0, 0, runner.base_seed)
                _remove_list(self._evaluated)

    def _after_iter(
        self,
        runner: Runner,
        batch_idx: int,
        data_batch: Any = None,
        outputs: Any = None,
        mode: str = 'train',
    ) -> None:
        """Look for unreadable samples. After the last batch, leave them out of the metrics."""
        loop = _loop(runner, mode)
        if not self._evaluated or find_positioned_sampler(loop.dataloader) is None:
            return
        entries = self._evaluated.read()
        if batch_idx + 1 == len(loop.dataloader):
            size = len(loop.dataloader.dataset)
            # Machines may have different work directories.
            all_entries = {
                entry for of_process in all_gather_object(entries) for entry in of_process
            }
            # Later positions are repetitions.
            entries = sorted(entry for entry in all_entries if entry.position < size)
            self._say(runner, entries, size)
            for metric in loop.evaluator.metrics if entries and is_main_process() else ():
                _leave_out_results(metric, {entry.position for entry in entries}, size)
        self.left_out = frozenset(entry.position for entry in entries)

    def _say(self, runner: Runner, entries: Sequence[UnreadableFile], size: int) -> None:
        if not entries or not is_main_process():
            return
        assert self._evaluated is not None
        for entry in entries:
            runner.logger.warning(f'{entry.path} cannot be read ({entry.reason}): it is left out.')
        runner.logger.warning(
            f'{len(entries)} of {size} images could not be read, and the others are evaluated; '
            f'those left out are listed in {str(self._evaluated.path)!r}.'
        )


def _loop(runner: Runner, mode: str) -> BaseLoop:
    return runner.val_loop if mode == 'val' else runner.test_loop


def _remove_list(listed: UnreadableList) -> None:
    """Remove the list of an earlier run or validation."""
    if is_main_process():
        listed.path.unlink(missing_ok=True)
    barrier()


def _leave_out_results(metric: BaseMetric, positions: Set[int], size: int) -> None:
    """Let the next evaluation of a metric leave out the results at some positions of ``size``."""
    compute = metric.compute_metrics

    def compute_rest(results: Sequence[Any]) -> dict[str, Any]:
        del metric.compute_metrics
        if not results:  # the metric only writes files
            return compute(results)
        if len(results) != size:
            raise ConfigError(
                f'{type(metric).__name__} does not keep a result for each image, so that those '
                'which cannot be read cannot be left out; repair the files, or take them out of '
                'the data.'
            )
        kept = [result for i, result in enumerate(results) if i not in positions]
        every = getattr(metric, 'img_ids', None)
        # Otherwise COCO would count the objects of these images as missed.
        if hasattr(metric, 'img_ids'):
            metric.img_ids = [row[0]['img_id'] for row in kept]
        try:
            return compute(kept)
        finally:
            if hasattr(metric, 'img_ids'):
                metric.img_ids = every

    metric.compute_metrics = compute_rest
