"""Compute standardized kernels and position tables once instead of in every forward."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from vit_plugin.models.layers.pos_embed import PosEmbed
from vit_plugin.models.layers.position_bias import PositionBias
from vit_plugin.models.layers.relative_position import RelativeAttention
from vit_plugin.models.layers.std_conv import StdConv2d

# Methods that compute a tensor from one parameter (the first argument) and plain values.
FOLDED_METHODS: tuple[tuple[type[nn.Module], str], ...] = (
    (StdConv2d, 'kernel'),
    (PosEmbed, 'table'),
    (PositionBias, 'bias'),
    (RelativeAttention, 'row_pairs'),
    (RelativeAttention, 'column_pairs'),
)


@dataclass(eq=False)
class Folded:
    """Replaces one of ``FOLDED_METHODS``, and reuses its last result for the same arguments.

    It checks that the parameter is unchanged, see :func:`memory`. It calls the method itself if the
    parameter needs a gradient or is not a plain tensor (as under ``torch.func``), and while a graph
    is traced.
    """

    method: Callable[..., Tensor]
    frozen: bool = False
    # state of the parameter, other arguments, result
    cached: tuple[Any, tuple, Tensor] | None = None

    def __call__(self, source: Tensor | None, *others: Any) -> Tensor:
        if not _is_at_rest(source):
            return self.method(source, *others)
        remember, same = memory(self.frozen)
        cached = self.cached  # other threads may replace self.cached
        if cached is None or cached[1] != others or not same(cached[0], source):
            # An inference tensor could not be trained later.
            with torch.inference_mode(False), torch.no_grad():
                self.cached = cached = remember(source), others, self.method(source, *others)
        return cached[2]


def _is_at_rest(source: Tensor | None) -> bool:
    if torch.compiler.is_compiling() or torch.jit.is_tracing():
        return False
    return source is None or (
        type(source) is nn.Parameter
        and not source.is_inference()
        and not (torch.is_grad_enabled() and source.requires_grad)
    )


def fold(model: nn.Module, frozen: bool = False) -> None:
    """Cache standardized kernels and position tables.

    Args:
        model: changed in place.
        frozen: see :func:`vit_plugin.passes.optimize`.
    """
    for module in model.modules():
        for kind, method in FOLDED_METHODS:
            if isinstance(module, kind) and method not in vars(module):
                setattr(module, method, Folded(getattr(module, method), frozen))


def unfold(model: nn.Module) -> None:
    """Undo :func:`fold`."""
    for module in model.modules():
        for _, method in FOLDED_METHODS:
            if isinstance(vars(module).get(method), Folded):
                delattr(module, method)


class Memory(NamedTuple):
    """A way to detect whether a tensor has changed since something was computed from it.

    Attributes:
        remember: the tensor -> its state.
        same: a state and the tensor -> whether it still has this state.
    """

    remember: Callable[[Tensor | None], Any]
    same: Callable[[Any, Tensor | None], bool]


def memory(frozen: bool) -> Memory:
    """Compare values, since some writes leave no trace; if ``frozen``, version and identity.

    Writes without a trace are ``p.data.copy_`` and collectives of ``torch.distributed``.
    """
    return Memory(_state, _is_unwritten) if frozen else Memory(_values, _has_values)


def _values(source: Tensor | None) -> Tensor | None:
    return None if source is None else source.clone()


def _has_values(values: Tensor | None, source: Tensor | None) -> bool:
    if values is None or source is None:
        return values is source
    return (
        values.dtype == source.dtype
        and values.device == source.device
        and torch.equal(values, source)
    )


def _state(source: Tensor | None) -> tuple[Any, ...]:
    return (source,) if source is None else (source, source.data_ptr(), source._version)


def _is_unwritten(state: tuple[Any, ...], source: Tensor | None) -> bool:
    return state[0] is source and state[1:] == _state(source)[1:]
