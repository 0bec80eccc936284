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
MIN_SAMPLES = 1000
INTERVAL = 50  # iterations between two checks of a training


@HOOKS.register_module()
class UnreadableHook(Hook):
    """Counts unreadable samples, and ends training when they exceed a given share.

    The data set replaces an unreadable sample by another, drawn by its position. In validation and
    test, the predictions for replacements are left out of the metrics. Each file is logged, and
    listed in the work directory: in ``unreadable.txt`` for the training, in ``unreadable_val.txt``
    and ``unreadable_test.txt`` for the last validation and test. Our runner always registers this
    hook, with the arguments ``unreadable=dict(max_share=...)`` of the config.

    Args:
        max_share: largest share of the training samples so far, or of 1,000 samples at the start. 0
            ends a training, validation or test at the first unreadable sample.

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

    def open_list(self, runner: Runner, split: str) -> UnreadableList | None:
        """The list of unreadable samples of a split, ``'train'``, ``'val'`` or ``'test'``.

        None if an unreadable sample is an error, because ``max_share`` is 0.
        """
        return UnreadableList(Path(runner.work_dir, LISTS[split])) if self.max_share else None

    def before_train(self, runner: Runner) -> None:
        self._train_list = UnreadableList(Path(runner.work_dir, LISTS['train']))
        if not runner.iter:
            _remove_list(self._train_list)
        sampler = find_positioned_sampler(runner.train_dataloader)
        # None for a loader that the user built: its samples have no positions. A sampler may be
        # endless and have a length of 0.
        self._global_batch = (
            None if sampler is None else sampler.samples_per_iteration * get_world_size()
        )

    def after_train_iter(self, runner: Runner, *args: Any, **kwargs: Any) -> None:
        last = runner.iter + 1 == runner.max_iters
        if self._global_batch and (self.every_n_train_iters(runner, INTERVAL) or last):
            self._check(runner, (runner.iter + 1) * self._global_batch)

    def _check(self, runner: Runner, samples: int) -> None:
        """Log new unreadable samples among the first ``samples``, and check their share."""
        # Workers run ahead of the training, so later positions may be listed too.
        entries = [entry for entry in self._train_list.read() if entry.position < samples]
        if is_main_process():
            for entry in set(entries) - self._logged:
                runner.logger.warning(
                    f'{entry.path} cannot be read ({entry.reason}): another sample takes its place.'
                )
            self._logged.update(entries)
        count = torch.tensor(float(len(entries)))
        all_reduce(count, 'max')  # so that all processes raise
        if count > self.max_share * max(samples, MIN_SAMPLES):
            raise ConfigError(
                f'{int(count)} of {samples} training samples could not be read, which is more '
                f'than unreadable.max_share={self.max_share}; they are listed in '
                f'{str(self._train_list.path)!r}: repair them or the path to the data, or give a '
                'larger share.'
            )

    def _before_epoch(self, runner: Runner, mode: str = 'train') -> None:
        """Begin the list of a validation or test. MMEngine also calls it before training epochs."""
        if mode != 'train':
            self.left_out, self._eval_list = frozenset(), self.open_list(runner, mode)
            sampler = find_positioned_sampler(_get_loop(runner, mode).dataloader)
            if self._eval_list and sampler is not None:
                sampler.begin(iteration=0, skipped=0, epoch=0, seed=runner.base_seed)
                _remove_list(self._eval_list)

    def _after_iter(
        self,
        runner: Runner,
        batch_idx: int,
        data_batch: Any = None,
        outputs: Any = None,
        mode: str = 'train',
    ) -> None:
        """In a validation or test, look for unreadable samples.

        After the last batch, leave them out of the metrics.
        """
        loop = _get_loop(runner, mode)
        # With max_share=0 an unreadable sample is an error, and a loader that the user built has no
        # positions.
        if not self._eval_list or find_positioned_sampler(loop.dataloader) is None:
            return
        entries = self._eval_list.read()
        if batch_idx + 1 == len(loop.dataloader):
            size = len(loop.dataloader.dataset)
            # Machines may have different work directories.
            all_entries = {entry for of_rank in all_gather_object(entries) for entry in of_rank}
            # Positions from `size` on repeat samples, so that all ranks have equally many.
            entries = sorted(entry for entry in all_entries if entry.position < size)
            self._log_left_out(runner, entries, size)
            for metric in loop.evaluator.metrics if entries and is_main_process() else ():
                _leave_out_results(metric, {entry.position for entry in entries}, size)
        self.left_out = frozenset(entry.position for entry in entries)

    def _log_left_out(self, runner: Runner, entries: Sequence[UnreadableFile], size: int) -> None:
        if not entries or not is_main_process():
            return
        assert self._eval_list is not None
        for entry in entries:
            runner.logger.warning(f'{entry.path} cannot be read ({entry.reason}): it is left out.')
        runner.logger.warning(
            f'{len(entries)} of {size} images could not be read, and the others are evaluated; '
            f'those left out are listed in {str(self._eval_list.path)!r}.'
        )


def _get_loop(runner: Runner, mode: str) -> BaseLoop:
    return runner.val_loop if mode == 'val' else runner.test_loop


def _remove_list(listed: UnreadableList) -> None:
    """Remove the list of an earlier run or validation."""
    if is_main_process():
        listed.path.unlink(missing_ok=True)
    barrier()


def _leave_out_results(metric: BaseMetric, positions: Set[int], size: int) -> None:
    """Let only the next evaluation of a metric leave out the results at some positions of ``size``.

    ``metric.compute_metrics`` is replaced until it is called.
    """
    compute = metric.compute_metrics

    def compute_readable(results: Sequence[Any]) -> dict[str, Any]:
        del metric.compute_metrics
        if not results:  # the metric only writes files
            return compute(results)
        if len(results) != size:
            raise ConfigError(
                f'{type(metric).__name__} does not keep a result for each image, so '
                'unreadable images cannot be left out; repair the files, or remove them from the '
                'data.'
            )
        kept = [result for i, result in enumerate(results) if i not in positions]
        if not hasattr(metric, 'img_ids'):
            return compute(kept)
        # A COCO metric would count the objects of the images without results as missed.
        all_ids = metric.img_ids
        metric.img_ids = [row[0]['img_id'] for row in kept]
        try:
            return compute(kept)
        finally:
            metric.img_ids = all_ids

    metric.compute_metrics = compute_readable
