"""Training without waiting for the device between logs."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from mmengine.dist import all_gather_object, all_reduce, is_main_process
from mmengine.hooks import LoggerHook
from mmengine.hooks import RuntimeInfoHook as EagerRuntimeInfoHook
from mmengine.runner import Runner
from torch import Tensor

from vit_plugin.arguments.fields import PositiveInt
from vit_plugin.errors import ConfigError
from vit_plugin.files.complete import write_text
from vit_plugin.registry import HOOKS

NEVER = 2**62  # a step that no run reaches


class Step(NamedTuple):
    """What is kept of a step: its number from 1, its losses, and the files of its batch."""
    number: int
    values: Mapping[str, Any]
    files: list


@HOOKS.register_module()
class RuntimeInfoHook(EagerRuntimeInfoHook):
    """MMEngine's hook, but it only reads the losses from the device when they are logged, all at once.

    MMEngine's hook reads them after every iteration, so the device must wait for the host. The recorded values are the
    same. With the optimizer wrappers of this package, this also applies to norms of gradients.

    Args:
        non_finite: what happens if a loss is infinite or NaN in any process. ``'stop'`` ends the run and writes no
            checkpoint after that step. ``'skip'`` leaves the step out in all processes: the optimizer does nothing, the
            schedules and the EMA go on. Norms of gradients count too, if they are clipped. The host then waits for the
            device in every step, and statistics of batch normalisation are not put back. ``'ignore'`` continues. The
            first two write a file ``non_finite_step_N.json`` in the work directory, with the learning rates, the
            losses, and the files of the batch of each process.
        max_skipped: the run ends if more steps in a row are left out.
    """

    def __init__(self, non_finite: Literal['stop', 'skip', 'ignore'] = 'stop', max_skipped: PositiveInt = 10) -> None:
        self._non_finite, self._max_skipped = non_finite, max_skipped
        self._pending: list[Step] = []

    def before_train(self, runner: Runner) -> None:
        super().before_train(runner)
        self._interval = min((hook.interval for hook in runner.hooks if isinstance(hook, LoggerHook)), default=1)
        self._pending, self._skipped_in_a_row = [], 0
        runner.optim_wrapper.defers_grad_norm = True
        runner.optim_wrapper.skips_non_finite = self._non_finite == 'skip'

    def after_train_iter(self, runner: Runner, batch_idx: int, data_batch: Any = None,
                         outputs: Mapping[str, Any] | None = None) -> None:
        wrapper, values = runner.optim_wrapper, dict(outputs or {})
        if getattr(wrapper, 'grad_norm', None) is not None:
            values[wrapper.grad_name], wrapper.grad_norm = wrapper.grad_norm, None
        values = {name: value.detach() if isinstance(value, Tensor) else value for name, value in values.items()}
        step = Step(runner.iter + 1, values, files_of(data_batch))
        if getattr(wrapper, 'skipped', False):
            self._skip(runner, step)
        else:
            self._skipped_in_a_row = 0
            self._pending.append(step)
        logged = self.every_n_inner_iters(batch_idx, self._interval)
        if logged or self.end_of_epoch(runner.train_dataloader, batch_idx) or runner.iter + 1 == runner.max_iters:
            self._record(runner, together=True)

    def check_losses(self, runner: Runner) -> None:
        """End the run if a loss of any process is not finite. Every process calls it, before a save.

        The gradients of one process are in the weights of all.
        """
        if self._pending:
            self._record(runner, together=True)

    def before_save_checkpoint(self, runner: Runner, checkpoint: dict) -> None:
        if self._pending:  # of a runner that does not call `check_losses`
            self._record(runner)  # weights after a loss that is not finite are useless
            checkpoint['message_hub'] = runner.message_hub.state_dict()  # MMEngine took it without these values

    def _record(self, runner: Runner, together: bool = False) -> None:
        """Read and record what is pending.

        Args:
            together: whether all processes do so now.
        """
        values = [(f'train/{name}', value) for step in self._pending for name, value in step.values.items()]
        tensors = [value.reshape(()).float() for _, value in values if isinstance(value, Tensor)]
        tensors = [tensor.to(tensors[0].device, non_blocking=True) for tensor in tensors]
        numbers = iter(torch.stack(tensors).tolist() if tensors else [])  # only here the host waits
        losses = []
        for name, value in values:
            number = next(numbers) if isinstance(value, Tensor) else value
            runner.message_hub.update_scalar(name, number)
            losses += [number] if name == 'train/loss' else []
        steps, self._pending = self._pending, []
        if self._non_finite == 'stop':
            with_loss = [step for step in steps if 'loss' in step.values]
            wrong = [step for step, loss in zip(with_loss, losses, strict=True) if not math.isfinite(loss)]
            self._check(runner, steps, wrong[0].number if wrong else NEVER, together)

    def _check(self, runner: Runner, steps: list[Step], first: int, together: bool) -> None:
        """End the run if a loss of this process, or of any, is not finite."""
        if together:
            earliest = torch.tensor(first)
            all_reduce(earliest, 'min')
            first = int(earliest)
        if first == NEVER:
            return
        step = next((step for step in steps if step.number == first), Step(first, {}, []))
        path = write_report(runner, step, together)
        losses = [float(step.values.get('loss', math.nan))]
        losses = all_gather_object(losses[0]) if together else losses
        loss = next((loss for loss in losses if not math.isfinite(loss)), math.nan)
        raise ConfigError(
            f'The loss is {loss} at step {first}, near a learning rate of {max(rates_of(runner)):.3g}: the run '
            f'ends here, and the last checkpoint is from before; {path!r} names the files of the batch; give a lower '
            "optim_wrapper.optimizer.lr, clip_grad, or look for bad data; default_hooks.runtime_info.non_finite='skip' "
            "leaves such steps out, and 'ignore' goes on all the same.")

    def _skip(self, runner: Runner, step: Step) -> None:
        self._skipped_in_a_row += 1
        hub, path = runner.message_hub, write_report(runner, step, together=True)
        hub.update_info('skipped_steps', hub.runtime_info.get('skipped_steps', 0) + 1)
        runner.logger.warning(f'Step {step.number} is left out, since its loss or its gradients are not finite; '
                              f'{path!r} names the files of the batch.')
        if self._skipped_in_a_row > self._max_skipped:
            raise ConfigError(
                f'{self._skipped_in_a_row} steps in a row were left out up to step {step.number}, since their losses '
                f'or gradients are not finite; {path!r} names the files of the last batch; give a lower '
                'optim_wrapper.optimizer.lr, or a larger default_hooks.runtime_info.max_skipped.')


def rates_of(runner: Runner) -> list[float]:
    """The learning rates of the optimizers' groups, each once."""
    return sorted({rate for group in runner.optim_wrapper.get_lr().values() for rate in group})


def files_of(batch: Any) -> list[str | int | None]:
    """The file of each sample of a batch, or its number in the data set if it has no file."""
    samples = batch.get('data_samples') if isinstance(batch, Mapping) else None
    return [getattr(sample, 'img_path', None) or getattr(sample, 'sample_idx', None)
            for sample in samples or () if sample is not None]


def write_report(runner: Runner, step: Step, together: bool) -> str:
    """Write down a step whose loss is not finite.

    Args:
        together: whether all processes do so. Else the file has the batch of this process alone.
    """
    losses = {name: float(value) for name, value in step.values.items() if is_number(value)}
    own = dict(losses={name: value if math.isfinite(value) else str(value) for name, value in losses.items()},
               files=step.files)
    path = Path(runner.work_dir, f'non_finite_step_{step.number}.json')
    processes = all_gather_object(own) if together else [own]
    if is_main_process() or not together:
        write_text(path, json.dumps(dict(step=step.number, lr=rates_of(runner), processes=processes), indent=1) + '\n')
    return str(path)


def is_number(value: Any) -> bool:
    """Whether the value is a number, or a tensor of one."""
    return isinstance(value, (int, float)) or (isinstance(value, Tensor) and value.numel() == 1)
