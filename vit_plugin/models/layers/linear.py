"""Linear layers that a CPU computes by oneDNN.

For float32 torch takes the BLAS that it was built with, which on many CPUs is the slower of the two, copies the bias
beforehand and goes over the result again for the activation.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.utils.flop_counter import flop_registry, mm_flop, register_flop_formula

# Multiply-adds below which the way there costs more than is gained.
MIN_PRODUCTS = 2**24

_AVAILABLE = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, '_linear_pointwise')
_DTYPES = {torch.float32}
if _AVAILABLE and torch.ops.mkldnn._is_mkldnn_bf16_supported():
    _DTYPES.add(torch.bfloat16)


def _onednn(x: Tensor, weight: Tensor, bias: Tensor | None = None, gelu: str | None = None) -> Tensor:
    """x (..., in) by weight (out, in), and GELU of that ``approximate``; it has no gradient."""
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, 'gelu' if gelu else 'none', [], gelu or '')


if _AVAILABLE and torch.ops.mkldnn._linear_pointwise not in flop_registry:
    @register_flop_formula(torch.ops.mkldnn._linear_pointwise)
    def _linear_flop(x: tuple[int, ...], weight: tuple[int, ...], *_: Any, out_shape: Any = None) -> int:
        rows = torch.Size(x[:-1]).numel()
        return mm_flop((rows, weight[1]), (weight[1], weight[0]))


class _Linear(torch.autograd.Function):
    """:func:`_onednn` with gradients, and gradients of those."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _onednn(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        needs_x, needs_weight, needs_bias = ctx.needs_input_grad
        rows = grad.flatten(0, -2)  # (B*N, out)
        return (linear(grad, weight.t()) if needs_x else None,
                rows.t() @ x.flatten(0, -2) if needs_weight else None,
                rows.sum(0) if needs_bias else None)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, gelu: str | None = None) -> Tensor:
    """``F.linear``, and GELU if its ``approximate`` is given.

    On a CPU large products are oneDNN's, unless ``torch.backends.mkldnn`` is disabled. Autocast, tracers, subclasses of
    tensors, ``torch.func`` and forward-mode gradients get torch's own operator, which they know.

    Args:
        x: (..., in).
        weight: (out, in).
        bias: (out, ).
        gelu: ``'none'`` or ``'tanh'``; None for no activation.
    """
    if _by_onednn(x, weight):
        sources = (x, weight) if bias is None else (x, weight, bias)
        if not (torch.is_grad_enabled() and any(source.requires_grad for source in sources)):
            return _onednn(x, weight, bias, gelu)
        x = _Linear.apply(x, weight, bias)
    else:
        x = F.linear(x, weight, bias)
    return F.gelu(x, approximate=gelu) if gelu else x


def _by_onednn(x: Tensor, weight: Tensor) -> bool:
    if torch.compiler.is_compiling() or torch.jit.is_tracing() or torch.is_autocast_enabled('cpu'):
        return False
    if torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0:
        return False
    plain = all(type(source) in (Tensor, nn.Parameter) for source in (x, weight))
    return (_AVAILABLE and torch.backends.mkldnn.enabled and plain and x.device.type == 'cpu'
            and x.dtype == weight.dtype and x.dtype in _DTYPES and x.numel() * weight.shape[0] >= MIN_PRODUCTS)


class Linear(nn.Linear):
    """``nn.Linear`` by :func:`linear`."""

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)


def is_plain(layer: nn.Module) -> bool:
    """Whether its weights may be used without calling it: it was not replaced (by LoRA, int8), and has no hook."""
    return (type(layer) is Linear and type(layer.weight) is nn.Parameter
            and not (layer._forward_hooks or layer._forward_pre_hooks))


def activated(layer: nn.Module, act: nn.Module, x: Tensor) -> Tensor:
    """``act(layer(x))``, in one pass where oneDNN can."""
    if type(act) is nn.GELU and is_plain(layer) and not (act._forward_hooks or act._forward_pre_hooks):
        return linear(x, layer.weight, layer.bias, gelu=act.approximate)
    return act(layer(x))
