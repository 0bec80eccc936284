"""Handle steps whose loss or gradients are infinite or NaN, and never save such a state."""

import json
import math
from collections.abc import Container, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from mmengine.dist import all_gather_object, all_reduce, is_main_process
from mmengine.runner import Runner
from torch import Tensor
from torch.distributed.tensor import DTensor

from anyfolder.complete import write_text
from vit_plugin.errors import ConfigError

from .step import BaseOptimWrapper

NEVER = 2**62  # a step that no run reaches, for a minimum over ranks


class RecordedStep(NamedTuple):
    """A recorded step: its number from 1, its losses, and the files of its batch."""

    number: int
    values: Mapping[str, Any]
    files: list


@dataclass
class NonFinitePolicy:
    """Ends the run at a non-finite step, or counts the steps that the wrapper has skipped.

    Attributes:
        action, max_skipped: see :class:`~vit_plugin.engine.RuntimeInfoHook`.
        skipped_in_a_row: the number of consecutive skipped steps.
    """

    action: Literal['stop', 'skip', 'ignore']
    max_skipped: int
    skipped_in_a_row: int = 0

    def begin(self, runner: Runner) -> None:
        """Configure the optimizer wrapper before a training.

        Raises:
            ConfigError: if steps should be skipped and the wrapper cannot.
        """
        self.skipped_in_a_row = 0
        wrapper, skips = runner.optim_wrapper, self.action == 'skip'
        if isinstance(wrapper, BaseOptimWrapper):
            wrapper.defer_grad_norm(skips_non_finite=skips)
        elif skips:
            raise ConfigError(
                "default_hooks.runtime_info.non_finite='skip' needs an optimizer wrapper of this "
                f'package, and {type(wrapper).__name__} is not one: give '
                "optim_wrapper.type='vit_plugin.OptimWrapper' or 'vit_plugin.AmpOptimWrapper'."
            )

    def record_taken(self) -> None:
        """Record a step that was not skipped."""
        self.skipped_in_a_row = 0

    def check(self, runner: Runner, steps: list[RecordedStep], all_ranks: bool) -> None:
        """End the run if a loss of these steps is not finite and ``action`` is ``'stop'``.

        Args:
            runner: the run.
            steps: the recorded steps.
            all_ranks: whether all ranks call this. If so, the losses of all count, otherwise only
                those of this rank.

        Raises:
            ConfigError: at the first such step.
        """
        if self.action != 'stop':
            return
        first = next(
            (step.number for step in steps if not math.isfinite(step.values.get('loss', 0.0))),
            NEVER,
        )
        if all_ranks:  # the first step that failed in any process
            earliest = torch.tensor(first)
            all_reduce(earliest, 'min')
            first = int(earliest)
        if first == NEVER:
            return
        step = next(
            (step for step in steps if step.number == first),
            RecordedStep(first, values={}, files=[]),
        )
        path = write_report(runner, step, all_ranks)
        own_loss = step.values.get('loss', math.nan)
        losses = all_gather_object(own_loss) if all_ranks else [own_loss]
        loss = next(loss for loss in losses if not math.isfinite(loss))
        raise ConfigError(
            f'The loss is {loss} at step {first}, near a learning rate of '
            f'{max(learning_rates(runner)):.3g}: the run ends here, and the last checkpoint is '
            f'from before; {path!r} names the files of the batch; give a lower '
            'optim_wrapper.optimizer.lr, clip_grad, or look for bad data; '
            "default_hooks.runtime_info.non_finite='skip' skips such steps, and 'ignore' "
            'continues.'
        )

    def may_save(self, runner: Runner, broken: str | None, step: int) -> bool:
        """Return whether the state after a step may be saved, because it is finite.

        Args:
            runner: the run.
            broken: the name of a tensor of the state that is not finite, or None.
            step: the number of the step.

        Raises:
            ConfigError: if the state is not finite, unless the run ignores that.
        """
        if broken is None:
            return True
        message = f'{broken} is not finite after step {step}, so nothing is saved'
        if self.action == 'ignore':
            runner.logger.warning(f'{message}: the last checkpoint is from before.')
            return False
        raise ConfigError(
            f'{message}: the run ends here, and the last checkpoint is from before. The losses '
            'were finite, but the gradients were not: give a lower optim_wrapper.optimizer.lr, '
            "or clip_grad together with default_hooks.runtime_info.non_finite='skip', which skips "
            "such steps; 'ignore' trains on without checkpoints."
        )

    def record_skipped(self, runner: Runner, step: RecordedStep) -> None:
        """Count and report a step skipped by all processes.

        Too many in a row raise a ``ConfigError``.
        """
        self.skipped_in_a_row += 1
        hub, path = runner.message_hub, write_report(runner, step, all_ranks=True)
        hub.update_info('skipped_steps', hub.runtime_info.get('skipped_steps', 0) + 1)
        runner.logger.warning(
            f'Step {step.number} is skipped, since its loss or its gradients are not finite; '
            f'{path!r} names the files of the batch.'
        )
        if self.skipped_in_a_row > self.max_skipped:
            raise ConfigError(
                f'{self.skipped_in_a_row} steps in a row were skipped up to step {step.number}, '
                f'since their losses or gradients are not finite; {path!r} names the files of the '
                'last batch; give a lower optim_wrapper.optimizer.lr, or a larger '
                'default_hooks.runtime_info.max_skipped.'
            )


def learning_rates(runner: Runner) -> list[float]:
    """The learning rates of the optimizers' groups, each once."""
    return sorted({rate for group in runner.optim_wrapper.get_lr().values() for rate in group})


def find_non_finite(state: Mapping[str, Any], parameters: Container[str]) -> str | None:
    """The name of the first tensor of a checkpoint that is not finite, or None.

    Only this rank's part of sharded tensors is checked. A buffer, such as a mask, may be infinite
    from the start, so only NaN counts for buffers.

    Args:
        state: the weights, the EMA weights and the state of the optimizer, as in MMEngine's
            checkpoint.
        parameters: the names of the model's parameters. All other weights are buffers.
    """
    # Name -> its value, and whether it must be finite (or only free of NaN).
    weights = {
        f'{key}.{name}': (value, name.removeprefix('module.') in parameters)
        for key in ('state_dict', 'ema_state_dict')
        for name, value in state.get(key, {}).items()
    }
    moments = {
        f'optimizer.{number}.{name}': (value, True)
        for number, moments_of_parameter in state.get('optimizer', {}).get('state', {}).items()
        for name, value in moments_of_parameter.items()
    }
    names, bounds, finite_only = [], [], []
    for name, (value, must_be_finite) in {**weights, **moments}.items():
        value = torch.tensor(value) if isinstance(value, float) else value
        if isinstance(value, Tensor) and value.is_floating_point() and value.numel():
            local_part = value.to_local() if isinstance(value, DTensor) else value
            if local_part.numel():
                names.append(name)
                finite_only.append(must_be_finite)
                # `aminmax` propagates NaN. Unlike `isfinite`, it allocates no tensor of the same
                # size.
                bounds.append(torch.stack(local_part.detach().aminmax()).float())
    if not bounds:
        return None
    # All bounds are read at once: a GPU is waited for only here.
    bounds = [bound.to(bounds[0].device, non_blocking=True) for bound in bounds]
    rows = zip(names, finite_only, torch.stack(bounds).tolist(), strict=True)
    for name, must_be_finite, (low, high) in rows:
        if math.isnan(low) or math.isnan(high):
            return name
        if must_be_finite and (math.isinf(low) or math.isinf(high)):
            return name
    return None


def write_report(runner: Runner, step: RecordedStep, all_ranks: bool) -> str:
    """Write a step's losses and files as JSON, of all processes or of this one. Return the path."""
    record = dict(
        losses={
            name: value if math.isfinite(value) else str(value)
            for name, value in step.values.items()
        },
        files=step.files,
    )
    path = Path(runner.work_dir, f'non_finite_step_{step.number}.json')
    processes = all_gather_object(record) if all_ranks else [record]
    if is_main_process() or not all_ranks:
        write_text(
            path,
            json.dumps(
                dict(step=step.number, lr=learning_rates(runner), processes=processes), indent=1
            )
            + '\n',
        )
    return str(path)
