"""One step of training, from top to bottom.

:func:`take_step` is the whole: the hooks seed, the model computes its losses and passes them to
:meth:`BaseOptimWrapper.update_params`, and the hooks record, average, log, schedule, save and stop.
docs/step.md has their order.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from mmengine.dist import all_reduce
from mmengine.optim import OptimWrapper
from mmengine.runner import Runner
from torch import Tensor, nn
from torch.distributed.tensor import DTensor


def take_step(runner: Runner, batch_idx: int, batch: Any) -> None:
    """Train on one batch.

    Args:
        runner: its hooks run before and after the update.
        batch_idx: number of the batch in the epoch, or in the run if that has no epochs.
        batch: a batch from the data loader.
    """
    arguments = dict(batch_idx=batch_idx, data_batch=batch)
    runner.call_hook('before_train_iter', **arguments)
    losses = runner.model.train_step(batch, optim_wrapper=runner.optim_wrapper)
    runner.call_hook('after_train_iter', **arguments, outputs=losses)


class Update(NamedTuple):
    """Outcome of an update of the parameters.

    Attributes:
        grad_norm: norm of the gradients of all ranks before clipping, on their device. None within
            a window of accumulation, or if no norm was needed.
        skipped: True if the step was skipped, because the loss or the norm was not finite.
    """

    grad_norm: Tensor | None = None
    skipped: bool = False


class BaseOptimWrapper(OptimWrapper):
    """The part of a step that our optimizer wrappers share, for plain and for sharded models.

    Attributes:
        last_update: outcome of the last update.
    """

    last_update = Update()
    _defers_grad_norm = False
    _skips_non_finite = False

    def defer_grad_norm(self, skips_non_finite: bool = False) -> None:
        """Leave norms of gradients on their device, in ``last_update``, to be read when logged.

        Args:
            skips_non_finite: whether all ranks skip a step if a loss or the norm is infinite or
                NaN. The CPU then waits for the device in every step. Gradients that are infinite
                because of a loss scale are left to the scaler.
        """
        self._defers_grad_norm, self._skips_non_finite = True, skips_non_finite

    @contextmanager
    def optim_context(self, model: nn.Module) -> Iterator[None]:
        """The context of a forward.

        Sharded gradients are averaged over the ranks only before an optimizer step. During
        accumulation, each rank keeps its own, as with DDP.
        """
        # A method of `fully_shard`. MMEngine handles DDP.
        if hasattr(model, 'set_requires_gradient_sync'):
            model.set_requires_gradient_sync(self.should_sync())
        with super().optim_context(model):
            yield

    def update_params(
        self,
        loss: Tensor,
        step_kwargs: dict[str, Any] | None = None,
        zero_kwargs: dict[str, Any] | None = None,
    ) -> None:
        """Compute gradients, and clip and apply them unless the step is skipped.

        See MMEngine's method for the arguments.
        """
        skipped = self._skips_non_finite and not _is_finite_everywhere(loss)
        self.last_update = Update(skipped=skipped)
        if skipped:
            self._inner_count += 1  # since `backward`, which counts, is left out
        else:
            self.backward(self.scale_loss(loss))
        if self.should_update():
            if not skipped:
                self.step(**(step_kwargs or {}))
            # Gradients accumulated before a skipped step are not yet averaged over the ranks, so
            # they are dropped too.
            self.zero_grad(**(zero_kwargs or {}))

    def _clip_grad(self) -> None:
        """Clip the gradients. MMEngine's ``step`` calls it after a loss scale is undone."""
        params = [
            param
            for group in self.optimizer.param_groups
            for param in group['params']
            if param.grad is not None
        ]
        # The norm is None if values are clipped.
        norm = self.clip_func(params, **self.clip_grad_kwargs) if params else None
        if isinstance(norm, DTensor):
            norm = norm.full_tensor()
        if self._skips_non_finite and self._is_broken(norm):  # the same on all ranks
            self.last_update = Update(skipped=True)
            self.zero_grad()  # optimizers skip parameters without gradients
        elif self._defers_grad_norm:
            self.last_update = Update(norm)
        elif norm is not None:
            self.message_hub.update_scalar(f'train/{self.grad_name}', float(norm))

    def _is_broken(self, norm: Tensor | None) -> bool:
        """True if a norm is not finite, unless because of a loss scale that will be lowered."""
        if norm is None or norm.isfinite():
            return False
        scaler = getattr(self, 'loss_scaler', None)
        # A scale of at most 1 does not cause overflows.
        return scaler is None or not scaler.is_enabled() or scaler.get_scale() <= 1


def is_accumulating(wrapper: Any) -> bool:
    """True if this iteration ends without an optimizer step, since gradients are accumulated."""
    return isinstance(wrapper, OptimWrapper) and not wrapper.should_update()


def _is_finite_everywhere(loss: Tensor) -> bool:
    """True if the loss is finite on all ranks. Every rank calls it."""
    finite = loss.detach().isfinite().all().float()
    all_reduce(finite, 'min')
    return bool(finite)
