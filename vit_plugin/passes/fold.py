"""Compute standardized kernels and position tables once instead of in every forward."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from vit_plugin.models.layers.pos_embed import PosEmbed
from vit_plugin.models.layers.position_bias import PositionBias
from vit_plugin.models.layers.relative_position import RelativeAttention
from vit_plugin.models.layers.std_conv import StdConv2d

from .tensor_states import change_detector

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

    It checks that the parameter is unchanged, see :func:`~.tensor_states.change_detector`. It calls
    the method itself if the parameter needs a gradient or is not a plain tensor (as under
    ``torch.func``), and while a graph is traced.
    """

    method: Callable[..., Tensor]
    frozen: bool = False
    # The state of the parameter, the other arguments, and the result.
    cached: tuple[Any, tuple, Tensor] | None = None

    def __call__(self, source: Tensor | None, *others: Any) -> Tensor:
        if not _may_reuse(source):
            return self.method(source, *others)
        state_of, has_state = change_detector(self.frozen)
        cached = self.cached  # other threads may replace self.cached
        if cached is None or cached[1] != others or not has_state(cached[0], source):
            # An inference tensor could not be trained later.
            with torch.inference_mode(False), torch.no_grad():
                self.cached = cached = state_of(source), others, self.method(source, *others)
        return cached[2]


def _may_reuse(source: Tensor | None) -> bool:
    """True if a result may be reused, see :class:`Folded`."""
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
        model: the model, which is changed in place.
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
