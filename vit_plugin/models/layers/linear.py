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

from .derived import transformed

# Multiply-adds below which the dispatch costs more than oneDNN gains.
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
    """:func:`_onednn` of rows (M, in) with gradients, and gradients of those."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        needs_x, needs_weight, _ = ctx.needs_input_grad
        ctx.save_for_backward(x if needs_weight else None, weight if needs_x else None)
        return _onednn(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        return (linear(grad, weight.t()) if weight is not None else None,
                grad.t() @ x if x is not None else None,
                grad.sum(0) if ctx.needs_input_grad[2] else None)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, gelu: str | None = None) -> Tensor:
    """``F.linear``, and GELU if its ``approximate`` is given.

    On a CPU large products are oneDNN's, unless ``torch.backends.mkldnn`` is disabled. Autocast, ``torch.compile``,
    ``torch.export``, ``torch.jit.trace``, ``torch.func``, forward-mode gradients and subclasses of tensors get torch's
    own operator, which they know.

    Args:
        x: (..., in).
        weight: (out, in).
        bias: (out, ).
        gelu: ``'none'`` or ``'tanh'``; None for no activation.
    """
    sources = (x, weight) if bias is None else (x, weight, bias)
    if _by_onednn(*sources):
        if not (torch.is_grad_enabled() and any(source.requires_grad for source in sources)):
            return _onednn(x, weight, bias, gelu)
        x = _Linear.apply(x.reshape(-1, x.shape[-1]), weight, bias).view(*x.shape[:-1], weight.shape[0])
    else:
        x = F.linear(x, weight, bias)
    return F.gelu(x, approximate=gelu) if gelu else x


def _by_onednn(x: Tensor, weight: Tensor, *bias: Tensor) -> bool:
    sources = (x, weight, *bias)
    if not _AVAILABLE or any(type(source) not in (Tensor, nn.Parameter) for source in sources):
        return False
    if x.device.type != 'cpu' or torch.is_autocast_enabled('cpu') or forward_ad._current_level >= 0:
        return False
    if torch.compiler.is_compiling() or torch.jit.is_tracing() or transformed():
        return False
    known = all(source.device == x.device and source.dtype == x.dtype and source.layout is torch.strided
                for source in sources)
    return (known and torch.backends.mkldnn.enabled and x.dtype in _DTYPES and x.shape[-1] == weight.shape[1]
            and x.numel() * weight.shape[0] >= MIN_PRODUCTS
            and all(source.is_contiguous() for source in bias))  # whose strides oneDNN is not told


def is_plain(module: nn.Module, kind: type[nn.Module]) -> bool:
    """Whether what it computes may be computed without calling it.

    It may have been replaced (by LoRA, int8), patched (to fetch weights from elsewhere), or somebody watches its calls.
    """
    hooks = (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks, module._backward_pre_hooks)
    return type(module) is kind and 'forward' not in vars(module) and not any(hooks)


def apply_linear(layer: nn.Module, x: Tensor, act: nn.Module | None = None) -> Tensor:
    """``act(layer(x))`` by :func:`linear`, in one pass where oneDNN can."""
    if not is_plain(layer, nn.Linear):
        x = layer(x)
    elif act is not None and is_plain(act, nn.GELU):
        return linear(x, layer.weight, layer.bias, gelu=act.approximate)
    else:
        x = linear(x, layer.weight, layer.bias)
    return x if act is None else act(x)
