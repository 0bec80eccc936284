"""The optimizer wrapper: clipping without a device sync, and accumulation in sharded models."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import torch
from mmengine.dist import all_reduce
from mmengine.optim import OptimWrapper as EagerOptimWrapper
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from typing_extensions import Required, TypedDict, Unpack

from vit_plugin.arguments.fields import Positive, PositiveInt
from vit_plugin.registry import OPTIM_WRAPPERS


class ClipNorm(TypedDict, total=False):
    """``clip_grad`` by the norm of all gradients: arguments of torch's ``clip_grad_norm_``."""

    type: Literal['norm']
    max_norm: Required[Positive]
    norm_type: Positive | Literal['inf']
    error_if_nonfinite: bool
    foreach: bool | None


class ClipValue(TypedDict, total=False):
    """``clip_grad`` of each value: arguments of torch's ``clip_grad_value_``."""

    type: Required[Literal['value']]
    clip_value: Required[Positive]
    foreach: bool | None


class WrapperOptions(TypedDict, total=False):
    """Arguments of MMEngine's ``OptimWrapper``."""

    optimizer: Required[torch.optim.Optimizer]
    accumulative_counts: PositiveInt
    clip_grad: ClipNorm | ClipValue | None


class KeepsGradNorm(EagerOptimWrapper):
    """The part that our optimizer wrappers add to MMEngine's, for plain and for sharded models.

    Attributes:
        defers_grad_norm: whether the norm stays on the device until
            :class:`~vit_plugin.engine.RuntimeInfoHook` records it. The hook sets this.
        grad_norm: this norm, over all ranks.
        skips_non_finite: whether a step is skipped, on all ranks together, if a loss or the norm is
            infinite or NaN. The hook sets this. The CPU then waits for the device in every step.
            Gradients that are infinite because of a loss scale are left to the scaler.
        skipped: whether the last step was skipped.
    """

    skips_non_finite = False
    skipped = False
    defers_grad_norm = False
    grad_norm: Tensor | None = None

    @contextmanager
    def optim_context(self, model: nn.Module) -> Iterator[None]:
        """Context of a forward.

        Sharded gradients are averaged over the ranks only before an optimizer step.
        """
        # Of `fully_shard`; MMEngine does it for DDP.
        if hasattr(model, 'set_requires_gradient_sync'):
            model.set_requires_gradient_sync(self.should_sync())
        with super().optim_context(model):
            yield

    def update_params(self, loss: Tensor, *args: Any, **kwargs: Any) -> None:
        self.skipped = self.skips_non_finite and not _finite_everywhere(loss)
        if not self.skipped:
            super().update_params(loss, *args, **kwargs)
            return
        self._inner_count += 1  # as `backward` counts
        # Gradients that were accumulated before are not averaged over the ranks yet.
        if self.should_update():
            self.zero_grad()

    def _clip_grad(self) -> None:
        params = [
            param
            for group in self.optimizer.param_groups
            for param in group['params']
            if param.grad is not None
        ]
        # None if values are clipped.
        norm = self.clip_func(params, **self.clip_grad_kwargs) if params else None
        norm = norm.full_tensor() if isinstance(norm, DTensor) else norm
        if (
            self.skips_non_finite
            and norm is not None
            and not norm.isfinite()
            and not self._may_scale_less()
        ):
            self.skipped = True  # the same on all ranks
            self.zero_grad()  # optimizers skip what has no gradient
        elif self.defers_grad_norm:
            self.grad_norm = norm
        elif norm is not None:
            self.message_hub.update_scalar(f'train/{self.grad_name}', float(norm))

    def _may_scale_less(self) -> bool:
        """Return whether gradients carry a scale that the scaler lowers after a skipped step."""
        scaler = getattr(self, 'loss_scaler', None)
        return scaler is not None and scaler.is_enabled() and scaler.get_scale() > 1


def in_window(wrapper: Any) -> bool:
    """Return whether gradients are being accumulated.

    The last optimizer step is then some iterations ago.
    """
    return isinstance(wrapper, EagerOptimWrapper) and not wrapper.should_update()


def _finite_everywhere(loss: Tensor) -> bool:
    finite = loss.detach().isfinite().all().float()
    all_reduce(finite, 'min')
    return bool(finite)


@OPTIM_WRAPPERS.register_module()
class OptimWrapper(KeepsGradNorm, EagerOptimWrapper):
    """MMEngine's ``OptimWrapper`` without waiting for gradient norms, also for sharded models."""

    def __init__(self, *args: Any, **kwargs: Unpack[WrapperOptions]) -> None:
        super().__init__(*args, **kwargs)
