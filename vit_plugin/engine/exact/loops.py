"""Training loops that start at any iteration, with the data an uninterrupted run would see."""

from collections.abc import Generator, Iterator
from types import SimpleNamespace
from typing import Any

import mmengine.runner
from mmengine.registry import LOOPS
from mmengine.runner import BaseLoop, Runner
from torch import nn
from torch.utils.data import DataLoader

from vit_plugin.data.positioned import find_positioned_sampler
from vit_plugin.data.seeded import find_seeded_dataset
from vit_plugin.errors import ConfigError

from ..step import take_step

# Keys in MMEngine's runtime information.
LAST_VALIDATED_KEY = 'last_validated_iter'  # the iteration of the last complete validation
VALIDATION_ITER_KEY = 'val/iter'  # a validation's log line shows names that begin with "val"


class _Resumable(BaseLoop):
    """What both loops share. A subclass defines ``_validation_is_due``."""

    dataloader: Any

    def _start(self) -> None:
        """Validate first if the run died before its last validation was done or recorded."""
        self._decide_current_val_interval()
        if self._iter > self.runner.message_hub.runtime_info.get(LAST_VALIDATED_KEY, 0):
            self._validate()

    def _is_due(self, done: int, last: int) -> bool:
        """True if a validation is due after this number of epochs or iterations."""
        return (
            self.runner.val_loop is not None
            and done >= self.val_begin
            and (done % self.val_interval == 0 or done == last)
        )

    def _validate(self) -> None:
        if self._validation_is_due():
            self.runner.message_hub.update_info(VALIDATION_ITER_KEY, self._iter)
            self.runner.val_loop.run()
            self.runner.message_hub.update_info(LAST_VALIDATED_KEY, self._iter)

    def _batches(self, epoch: int, skipped: int) -> Iterator[Any]:
        """The batches of a pass over the data, without the first ``skipped`` ones."""
        sampler = find_positioned_sampler(self.dataloader)
        if sampler is not None:  # it may be endless and still have a length of 0
            sampler.begin(self._iter, skipped, epoch, self.runner.base_seed)
            find_seeded_dataset(self.dataloader.dataset).seed_of_samples = self.runner.base_seed
            yield from self.dataloader
        else:  # the user built the loader: its first batches are loaded and thrown away
            for i, batch in enumerate(self.dataloader):
                if i >= skipped:
                    yield batch


class EpochBasedTrainLoop(_Resumable, mmengine.runner.EpochBasedTrainLoop):
    """MMEngine's loop that also starts mid-epoch, after any validation that a kill prevented."""

    def run(self) -> nn.Module:
        self.runner.call_hook('before_train')
        self._start()
        while self._epoch < self._max_epochs and not (self.stop_training and self._at_end()):
            self.run_epoch()
            self._decide_current_val_interval()
            self._validate()
        self.runner.call_hook('after_train')
        return self.runner.model

    def run_epoch(self) -> None:
        self.runner.call_hook('before_train_epoch')
        self.runner.model.train()
        length = len(self.dataloader)
        done = self._iter - self._epoch * length
        if not 0 <= done <= length:
            raise ConfigError(
                f'The run to resume is at iteration {self._iter} in epoch {self._epoch + 1}, but '
                f'an epoch has {length} iterations here: give it the same data set and batch '
                'size, or start again from its weights with --cfg-options load_from=CHECKPOINT.'
            )
        if done < length:  # otherwise only the hooks at the end of the epoch are left to run
            for i, batch in enumerate(self._batches(self._epoch, done), done):
                self.run_iter(i, batch)
        self.runner.call_hook('after_train_epoch')
        self._epoch += 1

    def _at_end(self) -> bool:
        """True between two epochs.

        A run that should stop first finishes the epoch it was resumed in.
        """
        return bool(self._iter == self._epoch * len(self.dataloader))

    def run_iter(self, idx: int, data_batch: Any) -> None:
        take_step(self.runner, idx, data_batch)
        self._iter += 1

    def _validation_is_due(self) -> bool:
        return self._at_end() and self._is_due(self._epoch, self._max_epochs)


class IterBasedTrainLoop(_Resumable, mmengine.runner.IterBasedTrainLoop):
    """MMEngine's loop that begins at any iteration, without loading the batches before it.

    At its end, a data loader restarts immediately, where MMEngine waits two seconds.
    """

    def __init__(
        self, runner: Runner, dataloader: DataLoader | dict, *args: Any, **kwargs: Any
    ) -> None:
        BaseLoop.__init__(self, runner, dataloader)
        built = self.dataloader
        # MMEngine 0.10.7 would start the workers here, before the iteration to begin at is known.
        super().__init__(runner, _EmptyLoader(dataset=built.dataset), *args, **kwargs)
        self.dataloader = built

    def run(self) -> nn.Module:
        self.runner.call_hook('before_train')
        self.runner.call_hook('before_train_epoch')
        self._start()
        self.dataloader_iterator = self._endless_batches()
        while self._iter < self._max_iters and not self.stop_training:
            self.runner.model.train()
            self.run_iter(next(self.dataloader_iterator))
            self._decide_current_val_interval()
            self._validate()
        self.dataloader_iterator.close()  # this also ends its workers
        self.runner.call_hook('after_train_epoch')
        self.runner.call_hook('after_train')
        return self.runner.model

    def run_iter(self, data_batch: Any) -> None:
        take_step(self.runner, self._iter, data_batch)
        self._iter += 1

    def _endless_batches(self) -> Generator[Any]:
        """The batches from the current iteration on, over passes without end."""
        sampler = find_positioned_sampler(self.dataloader)
        endless = sampler is not None and sampler.endless
        epoch, skipped = (0, self._iter) if endless else divmod(self._iter, len(self.dataloader))
        while True:
            yield from self._batches(epoch, skipped)
            epoch, skipped = epoch + 1, 0

    def _validation_is_due(self) -> bool:
        return self._is_due(self._iter, self._max_iters)


class _EmptyLoader(SimpleNamespace):
    """Placeholder for a data loader that must not start its workers yet."""

    def __iter__(self) -> Iterator:
        return iter(())


# MMEngine's loop -> ours.
RESUMABLE = {
    mmengine.runner.EpochBasedTrainLoop: EpochBasedTrainLoop,
    mmengine.runner.IterBasedTrainLoop: IterBasedTrainLoop,
}


def use_resumable_loop(loop: dict) -> dict:
    """Replace MMEngine's class by ours in the config of a training loop. Other classes remain."""
    loop = dict(loop)
    if 'type' not in loop:  # without by_epoch, it counts epochs, as in the check of the config
        by_epoch = loop.pop('by_epoch', True)
        loop['type'] = EpochBasedTrainLoop if by_epoch else IterBasedTrainLoop
    elif 'by_epoch' in loop:
        return loop  # MMEngine rejects `type` together with `by_epoch`
    loop_type = loop.get('type')
    loop_class = LOOPS.get(loop_type) if isinstance(loop_type, str) else loop_type
    return dict(loop, type=RESUMABLE.get(loop_class, loop_type))
