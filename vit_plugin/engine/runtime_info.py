"""Record the losses of a training, reading them from the device only when they are logged.

:mod:`.non_finite` decides what happens to a loss that is infinite or NaN.
"""

from collections.abc import Mapping
from typing import Any, Literal

import torch
from mmengine.hooks import LoggerHook
from mmengine.hooks import RuntimeInfoHook as EagerRuntimeInfoHook
from mmengine.runner import Runner
from torch import Tensor

from vit_plugin.arguments.fields import PositiveInt
from vit_plugin.registry import HOOKS

from .non_finite import NonFinitePolicy, RecordedStep
from .step import Update


@HOOKS.register_module()
class RuntimeInfoHook(EagerRuntimeInfoHook):
    """MMEngine's hook, but it reads losses from the device only to log them, all at once.

    It also reads them after the first step, for the progress line, and at the end of an epoch.
    MMEngine's hook reads losses after every iteration, which forces a sync. The recorded values are
    the same. With the optimizer wrappers of this package, this also applies to norms of gradients.

    Args:
        non_finite: what happens if a loss is infinite or NaN in any process. ``'stop'`` ends the
            run and writes no checkpoint after that step. ``'skip'`` skips the step in all
            processes: the optimizer does nothing, the schedules and the EMA continue. Gradient
            norms count too, if gradients are clipped. The CPU then waits for the device in every
            step, and the statistics of BatchNorm are not restored. ``'ignore'`` continues.
            ``'stop'`` and ``'skip'`` write a file ``non_finite_step_N.json`` in the work directory,
            with the learning rates, the losses, and the files of the batch of each process.
        max_skipped: the run ends if more steps in a row are skipped.
    """

    def __init__(
        self, non_finite: Literal['stop', 'skip', 'ignore'] = 'stop', max_skipped: PositiveInt = 10
    ) -> None:
        self._policy = NonFinitePolicy(non_finite, max_skipped)
        self._pending: list[RecordedStep] = []

    def before_train(self, runner: Runner) -> None:
        super().before_train(runner)
        self._interval = min(
            (hook.interval for hook in runner.hooks if isinstance(hook, LoggerHook)), default=1
        )
        self._pending = []
        self._policy.begin(runner)

    def after_train_iter(
        self,
        runner: Runner,
        batch_idx: int,
        data_batch: Any = None,
        outputs: Mapping[str, Any] | None = None,
    ) -> None:
        wrapper, values = runner.optim_wrapper, dict(outputs or {})
        update = getattr(wrapper, 'last_update', Update())
        if update.grad_norm is not None:
            values[wrapper.grad_name] = update.grad_norm
        values = {
            name: value.detach() if isinstance(value, Tensor) else value
            for name, value in values.items()
        }
        step = RecordedStep(runner.iter + 1, values, sample_files(data_batch))
        if update.skipped:
            self._policy.record_skipped(runner, *read_numbers([step]))
        else:
            self._policy.record_taken()
            self._pending.append(step)
        logged = self.every_n_inner_iters(batch_idx, self._interval)
        if (
            logged
            or self.end_of_epoch(runner.train_dataloader, batch_idx)
            or runner.iter + 1 in (1, runner.max_iters)
        ):
            self._record(runner, all_ranks=True)

    def check_losses(self, runner: Runner) -> None:
        """End the run if a loss of any process is not finite. Every process calls it before a save.

        Even a process with finite losses must not save: its weights have the gradients of all.
        """
        if self._pending:
            self._record(runner, all_ranks=True)

    def may_save(self, runner: Runner, broken: str | None, step: int) -> bool:
        """See :meth:`.non_finite.NonFinitePolicy.may_save`."""
        return self._policy.may_save(runner, broken, step)

    def state_dict(self) -> dict[str, int]:
        """The number of consecutive skipped steps, for :mod:`.checkpoints.hook_states`."""
        return dict(skipped_in_a_row=self._policy.skipped_in_a_row)

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Restore the number of consecutive skipped steps."""
        self._policy.skipped_in_a_row = state['skipped_in_a_row']

    def before_save_checkpoint(self, runner: Runner, checkpoint: dict) -> None:
        if self._pending:  # still pending if only this process saves
            # Weights after a loss that is not finite are useless.
            self._record(runner, all_ranks=False)
            # The checkpoint's copy of the hub was made before these values were recorded.
            checkpoint['message_hub'] = runner.message_hub.state_dict()

    def _record(self, runner: Runner, all_ranks: bool) -> None:
        """Record and check the losses of the pending steps, see :meth:`.NonFinitePolicy.check`."""
        steps, self._pending = read_numbers(self._pending), []
        for step in steps:
            for name, value in step.values.items():
                runner.message_hub.update_scalar(f'train/{name}', value)
        self._policy.check(runner, steps, all_ranks)


def read_numbers(steps: list[RecordedStep]) -> list[RecordedStep]:
    """Replace one-element tensors in steps by numbers, with a single sync."""
    tensors = [
        value.reshape(()).float()
        for step in steps
        for value in step.values.values()
        if isinstance(value, Tensor)
    ]
    tensors = [tensor.to(tensors[0].device, non_blocking=True) for tensor in tensors]
    numbers = iter(torch.stack(tensors).tolist() if tensors else [])  # the only sync
    return [
        step._replace(
            values={
                name: next(numbers) if isinstance(value, Tensor) else value
                for name, value in step.values.items()
            }
        )
        for step in steps
    ]


def sample_files(batch: Any) -> list[str | int | None]:
    """The file of each sample of a batch, or its number in the data set if it has no file."""
    samples = batch.get('data_samples') if isinstance(batch, Mapping) else None
    return [
        getattr(sample, 'img_path', None) or getattr(sample, 'sample_idx', None)
        for sample in samples or ()
        if sample is not None
    ]
