"""Training in which the host does not wait for the device between logs."""

from collections.abc import Mapping
from typing import Any

import torch
from mmengine.hooks import LoggerHook
from mmengine.hooks import RuntimeInfoHook as EagerRuntimeInfoHook
from mmengine.optim import OptimWrapper as EagerOptimWrapper
from mmengine.runner import Runner
from torch import Tensor

from vit_plugin.registry import HOOKS, OPTIM_WRAPPERS


@HOOKS.register_module()
class RuntimeInfoHook(EagerRuntimeInfoHook):
    """MMEngine's hook, but it reads the losses from the device when they are logged, all at once.

    MMEngine's reads each after every iteration, and so lets the device wait for the host to give it the next. The
    values that are recorded are the same. Norms of gradients too, with the optimizer wrappers of this package.
    """

    def before_train(self, runner: Runner) -> None:
        super().before_train(runner)
        self._interval = min((hook.interval for hook in runner.hooks if isinstance(hook, LoggerHook)), default=1)
        self._pending: list[Mapping[str, Any]] = []
        runner.optim_wrapper.defers_grad_norm = True

    def after_train_iter(self, runner: Runner, batch_idx: int, data_batch: Any = None,
                         outputs: Mapping[str, Any] | None = None) -> None:
        wrapper, values = runner.optim_wrapper, dict(outputs or {})
        if getattr(wrapper, 'grad_norm', None) is not None:
            values[wrapper.grad_name], wrapper.grad_norm = wrapper.grad_norm, None
        self._pending.append({name: value.detach() if isinstance(value, Tensor) else value
                              for name, value in values.items()})
        logged = self.every_n_inner_iters(batch_idx, self._interval)
        if logged or self.end_of_epoch(runner.train_dataloader, batch_idx) or runner.iter + 1 == runner.max_iters:
            self._record(runner)

    def _record(self, runner: Runner) -> None:
        values = [(f'train/{name}', value) for outputs in self._pending for name, value in outputs.items()]
        tensors = [value.reshape(()).float() for _, value in values if isinstance(value, Tensor)]
        tensors = [tensor.to(tensors[0].device, non_blocking=True) for tensor in tensors]
        numbers = iter(torch.stack(tensors).tolist() if tensors else [])  # the one time that the host waits
        for name, value in values:
            runner.message_hub.update_scalar(name, next(numbers) if isinstance(value, Tensor) else value)
        self._pending.clear()


class KeepsGradNorm:
    """For optimizer wrappers: the norm stays on the device, as ``grad_norm``, until the hook, if any, records it."""

    defers_grad_norm = False
    grad_norm: Tensor | None = None

    def _clip_grad(self) -> None:
        if not self.defers_grad_norm:
            return super()._clip_grad()
        params = [param for group in self.optimizer.param_groups for param in group['params'] if param.grad is not None]
        self.grad_norm = self.clip_func(params, **self.clip_grad_kwargs) if params else None


@OPTIM_WRAPPERS.register_module()
class OptimWrapper(KeepsGradNorm, EagerOptimWrapper):
    """MMEngine's ``OptimWrapper``, but it does not wait for the norm of the gradients; see :class:`RuntimeInfoHook`."""
