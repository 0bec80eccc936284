"""Count the samples that cannot be read, and end the run when they are too many."""

from pathlib import Path
from typing import Any

import torch
from mmengine.dist import all_reduce, barrier, get_world_size, is_main_process
from mmengine.hooks import Hook
from mmengine.runner import Runner

from vit_plugin.arguments.fields import Fraction
from vit_plugin.data.seeded import positioned_sampler_of
from vit_plugin.data.unreadable import LIST, UnreadableFile, UnreadableList
from vit_plugin.errors import ConfigError
from vit_plugin.registry import HOOKS

AT_LEAST = 1000  # samples that a share is taken of, so that one unreadable file at the start is no great share
INTERVAL = 50  # iterations


@HOOKS.register_module()
class UnreadableHook(Hook):
    """Ends the run when more than a share of its training samples could not be read.

    Another sample, drawn by the position, takes the place of each of them. Its file is logged and listed in
    ``unreadable.txt`` in the work directory. Our runner has this hook by itself; ``unreadable=dict(max_share=...)`` in
    the config sets it.

    Args:
        max_share: the largest share of the samples so far, and at the start of 1,000 samples. 0 ends the run at the
            first one.

    Raises:
        ConfigError: in all processes, if there are more.
    """

    priority = 'LOW'

    def __init__(self, max_share: Fraction = 0.01) -> None:
        self.max_share = max_share
        self._logged: set[UnreadableFile] = set()

    def before_train(self, runner: Runner) -> None:
        self._list = UnreadableList(Path(runner.work_dir, LIST))
        if not runner.iter and is_main_process():
            self._list.path.unlink(missing_ok=True)  # of an earlier run
        barrier()
        sampler = positioned_sampler_of(runner.train_dataloader)
        self._batch = sampler.samples * get_world_size() if sampler else None

    def after_train_iter(self, runner: Runner, batch_idx: int, data_batch: Any = None, outputs: Any = None) -> None:
        last = runner.iter + 1 == runner.max_iters
        if self._batch and (self.every_n_train_iters(runner, INTERVAL) or last):
            self._check(runner, (runner.iter + 1) * self._batch)

    def _check(self, runner: Runner, seen: int) -> None:
        found = [entry for entry in self._list.read() if entry.position < seen]  # workers are ahead of the training
        if is_main_process():
            for entry in set(found) - self._logged:
                runner.logger.warning(f'{entry.path} cannot be read ({entry.reason}): another sample takes its place.')
            self._logged.update(found)
        worst = torch.tensor(float(len(found)))
        all_reduce(worst, 'max')  # so that all processes end together
        if worst > self.max_share * max(seen, AT_LEAST):
            raise ConfigError(
                f'{int(worst)} of {seen} training samples could not be read, which is more than unreadable.max_share='
                f'{self.max_share}; they are listed in {str(self._list.path)!r}: repair them or the path to the data, '
                'or give a larger share.')
