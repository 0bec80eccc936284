"""Compute standardized kernels and position tables once instead of in every forward.

Here, to fold is to cache what a method computes from one parameter, and to compute it again only
after the parameter has changed. The parameters stay: no BatchNorm is folded into a convolution.
"""

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

# Classes and their methods that compute a tensor from one parameter and plain values. The parameter
# is the first argument, or None for fixed sines and cosines.
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

    It checks that the parameter is unchanged. It calls the method itself if the parameter needs a
    gradient or is not a plain tensor (as under ``torch.func``), and while a graph is traced.

    Attributes:
        method: the replaced method, bound to its module.
        frozen: see :func:`~vit_plugin.passes.tensor_states.change_detector`.
    """

    method: Callable[..., Tensor]
    frozen: bool = False
    # The parameter's state when it was read, the other arguments, and the result.
    cached: tuple[Any, tuple, Tensor] | None = None

    def __call__(self, parameter: Tensor | None, *others: Any) -> Tensor:
        if not _may_reuse(parameter):
            return self.method(parameter, *others)
        state_of, has_state = change_detector(self.frozen)
        cached = self.cached  # a local name, since other threads may replace self.cached
        if cached is None or cached[1] != others or not has_state(cached[0], parameter):
            # An inference tensor could not be trained later.
            with torch.inference_mode(False), torch.no_grad():
                self.cached = cached = state_of(parameter), others, self.method(parameter, *others)
        return cached[2]


def _may_reuse(parameter: Tensor | None) -> bool:
    """True if a result may be reused, see :class:`Folded`."""
    if torch.compiler.is_compiling() or torch.jit.is_tracing():
        return False
    return parameter is None or (
        type(parameter) is nn.Parameter
        and not parameter.is_inference()
        and not (torch.is_grad_enabled() and parameter.requires_grad)
    )


def fold(model: nn.Module, frozen: bool = False) -> None:
    """Cache standardized kernels and position tables.

    Args:
        model: the model, which is changed in place.
        frozen: see :func:`vit_plugin.passes.optimize`.
    """
    for module in model.modules():
        for module_class, method in FOLDED_METHODS:
            if isinstance(module, module_class) and method not in vars(module):
                setattr(module, method, Folded(getattr(module, method), frozen))


def unfold(model: nn.Module) -> None:
    """Undo :func:`fold`."""
    for module in model.modules():
        for _, method in FOLDED_METHODS:
            if isinstance(vars(module).get(method), Folded):
                delattr(module, method)
