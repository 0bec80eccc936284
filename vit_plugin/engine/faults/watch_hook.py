"""Tell the watch where this process is."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mmengine.dist import get_world_size
from mmengine.hooks import Hook
from mmengine.runner import Runner

from vit_plugin.fields import Positive
from vit_plugin.registry import HOOKS

from ..processes import meets_at_store, timeout_of
from .watch import Watch


@HOOKS.register_module()
class WatchHook(Hook):
    """Ends a run of several processes when one of them is dead or hangs, and names it, see :class:`Watch`.

    A rank hangs if it is the furthest behind and comes no further for ``env_cfg.dist_cfg.timeout`` seconds. That is one
    step, one batch, one save, one batch of a validation, or the metrics of a validation.

    Args:
        silence: seconds without a sign of life after which a rank is dead. The sign comes from a thread, which only one
            long call that keeps Python's lock, a stopped or killed process, or a lost host can silence. A shorter
            ``env_cfg.dist_cfg.timeout`` counts in its place.
    """

    priority = 'LOWEST'

    def __init__(self, silence: Positive = 120.) -> None:
        self._silence = silence
        self._watch: Watch | None = None

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Around a run: an error in it ends the other ranks too."""
        try:
            yield
        except BaseException as error:
            if self._watch:
                self._watch.fail(error)
            raise
        finally:
            self._watch = None

    def before_run(self, runner: Runner) -> None:
        if get_world_size() == 1:
            return
        if meets_at_store():
            self._watch = Watch(timeout_of(runner.cfg.get('env_cfg') or {}), self._silence)
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
        self._move(runner.iter + 1, 'step')

    def before_save_checkpoint(self, runner: Runner, checkpoint: dict) -> None:
        if self._watch:
            place = self._watch.place
            self._move(place.step - (place.phase == 'loading'), 'saving')

    def after_train_iter(self, runner: Runner, batch_idx: int, data_batch: Any = None, outputs: Any = None) -> None:
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
        self._move(runner.iter, 'test')
