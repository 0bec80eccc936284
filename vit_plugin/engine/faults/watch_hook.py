"""Tell the watch where this process is."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mmengine.dist import get_world_size
from mmengine.hooks import Hook
from mmengine.runner import EpochBasedTrainLoop, Runner

from vit_plugin.fields import Positive
from vit_plugin.registry import HOOKS

from ..processes import meets_at_store, timeout_of
from .places import Patience
from .watch import Watch


@HOOKS.register_module()
class WatchHook(Hook):
    """Ends a run of several processes when one of them is dead or hangs, and names it, see :class:`Watch`.

    A rank hangs if it is the furthest behind and comes no further. A step in the middle of training, and the loading of
    its batch, may take ``step`` seconds. Everything else may take ``env_cfg.dist_cfg.timeout`` seconds: what comes
    before the first step, that step, which may compile, one save, one batch of a validation, and its metrics.

    Args:
        silence: seconds without a sign of life after which a rank is dead. The sign comes from a thread, which only one
            long call that keeps Python's lock, a stopped or killed process, or a lost host can silence. A shorter
            ``env_cfg.dist_cfg.timeout`` counts in its place.
        step: seconds for a step. A shorter ``env_cfg.dist_cfg.timeout`` counts in its place.
    """

    priority = 'LOWEST'

    def __init__(self, silence: Positive = 120., step: Positive = 600.) -> None:
        self._silence, self._step = silence, step
        self._watch: Watch | None = None
        self._first = True

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Around a run: an error in it ends the other ranks too."""
        self._first = True
        try:
            yield
        except BaseException as error:
            if self._watch:
                self._watch.fail(error)
            raise
        finally:
            self._watch = None

    def saving(self) -> None:
        """Note that this rank saves a checkpoint. All do, whether they write or not."""
        self._move(self._watch.place.step if self._watch else 0, 'saving')

    def saved(self) -> None:
        """Note that this rank has saved, and waits for the others."""
        self._move(self._watch.place.step if self._watch else 0, 'saved')

    def before_run(self, runner: Runner) -> None:
        if get_world_size() == 1:
            return
        if meets_at_store():
            timeout = timeout_of(runner.cfg.get('env_cfg') or {})
            self._watch = Watch(Patience(min(self._step, timeout), timeout), self._silence)
        else:
            runner.logger.warning('The processes met elsewhere than at MASTER_ADDR and MASTER_PORT, so that nothing '
                                  'ends them all if one is dead.')

    def after_run(self, runner: Runner) -> None:
        if self._watch:
            self._watch.leave()
        self._watch = None

    def _move(self, step: int, phase: str) -> None:
        if self._watch:
            self._watch.move(step, phase)

    def before_train_iter(self, runner: Runner, batch_idx: int, data_batch: Any = None) -> None:
        self._move(runner.iter + 1, 'first' if self._first else 'step')
        self._first = False

    def after_train_iter(self, runner: Runner, batch_idx: int, data_batch: Any = None, outputs: Any = None) -> None:
        if isinstance(runner.train_loop, EpochBasedTrainLoop) and self.end_of_epoch(runner.train_dataloader, batch_idx):
            self._move(runner.iter + 1, 'epoch')
        else:
            self._move(runner.iter + 2, 'loading')

    def after_train_epoch(self, runner: Runner) -> None:
        self._move(runner.iter + 1, 'loading')

    def before_val(self, runner: Runner) -> None:
        self._move(runner.iter, 'validation')

    def after_val_iter(self, runner: Runner, batch_idx: int, data_batch: Any = None, outputs: Any = None) -> None:
        ends = batch_idx + 1 == len(runner.val_loop.dataloader)
        self._move(runner.iter, 'evaluation' if ends else 'validation')

    def after_val(self, runner: Runner) -> None:
        self._move(runner.iter + 1, 'loading')

    def after_test_iter(self, runner: Runner, batch_idx: int, data_batch: Any = None, outputs: Any = None) -> None:
        ends = batch_idx + 1 == len(runner.test_loop.dataloader)
        self._move(runner.iter, 'evaluation' if ends else 'test')
