"""Linear layers that oneDNN computes on a CPU.

For float32, torch uses the BLAS that it was built with. On some processors oneDNN is faster. oneDNN also adds the bias
and computes the activation within the product. With the BLAS, both need extra passes over the memory.
"""

from collections.abc import Collection
from functools import partial, reduce
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.flop_counter import flop_registry, mm_flop, register_flop_formula

from vit_plugin.models.layers.mlp import Mlp

from . import processor

# What oneDNN computes, by vendor and dtype, as measured (docs/benchmarks.md). 'linear': products, in the forward and
# for the gradient of the input. 'gelu': a product and the GELU after it, if no gradient is needed.
CHOICES: dict[tuple[str, torch.dtype], Collection[str]] = {
    ('AMD', torch.float32): ('linear', 'gelu'),
    ('AMD', torch.bfloat16): ('linear', 'gelu'),
    ('Intel', torch.float32): ('gelu', ),
    ('Intel', torch.bfloat16): ('linear', 'gelu'),
}

# oneDNN gets blocks of so many rows, and torch the rows that are left over. oneDNN keeps about 0.4 MiB of machine code
# for every shape until the process ends, whatever the capacity of its cache. With blocks, a layer has one shape.
ROWS = 256
# With fewer multiply-adds in a block, the dispatch costs more time than oneDNN saves.
MIN_PRODUCTS = 2**24


def is_available() -> bool:
    """Whether this torch has the operator. It is a private interface."""
    return torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, '_linear_pointwise')


class OneDnnLinear(nn.Linear):
    """A linear layer that uses oneDNN where that is possible and faster. Its parameters are those of ``nn.Linear``.

    torch's own operator computes everything else: other devices and dtypes, autocast, compilers, exporters, subclasses
    of tensors, small products. Who computes which rows follows from the layer, the dtype and the number of rows alone.

    Attributes:
        chosen: for each dtype, what oneDNN computes, see ``CHOICES``.
    """

    chosen: dict[torch.dtype, Collection[str]] = {}

    def forward(self, x: Tensor, gelu: str | None = None) -> Tensor:
        """Tokens (..., in) -> (..., out). A GELU follows if its ``approximate`` is given as ``gelu``."""
        learns = torch.is_grad_enabled() and (x.requires_grad or any(p.requires_grad for p in self.parameters(False)))
        fused = None if learns else gelu
        if ('gelu' if fused else 'linear') in self.chosen.get(x.dtype, ()) and self._is_possible(x):
            rows = x.reshape(-1, self.in_features)
            x = _Product.apply(rows, self.weight, self.bias, fused).view(*x.shape[:-1], self.out_features)
        else:
            x, fused = super().forward(x), None
        return F.gelu(x, approximate=gelu) if gelu and not fused else x

    def _is_possible(self, x: Tensor) -> bool:
        if torch.compiler.is_compiling() or torch.jit.is_tracing() or not torch.backends.mkldnn.enabled:
            return False
        if type(x) is not Tensor or x.device.type != 'cpu' or torch.is_autocast_enabled('cpu'):
            return False
        if not all(type(p) is nn.Parameter and p.dtype == x.dtype and p.device == x.device and p.is_contiguous()
                   for p in self.parameters(False)):
            return False
        return x.numel() >= ROWS * self.in_features and ROWS * self.weight.numel() >= MIN_PRODUCTS


class OneDnnMlp(Mlp):
    """An MLP whose first layer also computes the activation."""

    def hidden(self, x: Tensor) -> Tensor:
        if type(self.fc1) is not OneDnnLinear or type(self.act) is not nn.GELU:  # one was replaced, for example by LoRA
            return super().hidden(x)
        return self.fc1(x, gelu=self.act.approximate)


class _Product(torch.autograd.Function):
    """Rows (M, in) times weight (out, in), plus bias. A GELU follows if its ``approximate`` is given as ``gelu``."""

    @staticmethod
    def forward(x: Tensor, weight: Tensor, bias: Tensor | None, gelu: str | None) -> Tensor:
        y = x.new_empty(len(x), len(weight))
        in_blocks = len(x) - len(x) % ROWS
        for block, out in zip(x[:in_blocks].split(ROWS), y.split(ROWS), strict=False):
            out.copy_(torch.ops.mkldnn._linear_pointwise(block, weight, bias, 'gelu' if gelu else 'none', [],
                                                         gelu or ''))
        if in_blocks < len(x):
            y[in_blocks:] = _plain(x[in_blocks:], weight, bias, gelu)
        return y

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Tensor) -> None:
        x, weight, bias, ctx.gelu = inputs
        needs_x, needs_weight, *_ = ctx.needs_input_grad
        ctx.save_for_backward(x if needs_weight or ctx.gelu else None, weight if needs_x or ctx.gelu else None,
                              bias if ctx.gelu else None)
        ctx.save_for_forward(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, bias = ctx.saved_tensors
        grad = _before_gelu(grad, x, weight, bias, ctx.gelu)
        needs_x, needs_weight, needs_bias, _ = ctx.needs_input_grad
        return (_Product.apply(grad, weight.t(), None, None) if needs_x else None,
                grad.t() @ x if needs_weight else None, grad.sum(0) if needs_bias else None, None)

    @staticmethod
    def jvp(ctx: Any, x_t: Tensor | None, weight_t: Tensor | None, bias_t: Tensor | None, _: None) -> Tensor:
        x, weight, bias = ctx.saved_tensors
        parts = [F.linear(x_t, weight) if x_t is not None else None,
                 F.linear(x, weight_t) if weight_t is not None else None,
                 bias_t.expand(len(x), -1) if bias_t is not None else None]
        return _before_gelu(reduce(torch.add, (part for part in parts if part is not None)), x, weight, bias, ctx.gelu)

    @staticmethod
    def vmap(info: Any, in_dims: tuple, x: Tensor, weight: Tensor, bias: Tensor | None, gelu: str | None,
             ) -> tuple[Tensor, int]:
        return torch.vmap(partial(_plain, gelu=gelu), in_dims[:3])(x, weight, bias), 0


def _plain(x: Tensor, weight: Tensor, bias: Tensor | None, gelu: str | None) -> Tensor:
    x = F.linear(x, weight, bias)
    return F.gelu(x, approximate=gelu) if gelu else x


def _before_gelu(grad: Tensor, x: Tensor, weight: Tensor, bias: Tensor | None, gelu: str | None) -> Tensor:
    """Multiply by the derivative of the GELU, for a gradient (backward) or a tangent (forward mode)."""
    return torch.ops.aten.gelu_backward(grad, F.linear(x, weight, bias), approximate=gelu) if gelu else grad


def use_onednn(model: nn.Module, chosen: dict[torch.dtype, Collection[str]] | None = None) -> None:
    """Turn the plain linear layers of a model into :class:`OneDnnLinear`, and its MLPs into :class:`OneDnnMlp`.

    The modules stay the same objects, with their hooks and parameters. Layers of another class (LoRA, sharded or
    quantised layers) are not changed. A hook on ``fc1`` of an MLP then sees the output after the activation. A hook on
    ``act`` is not called.

    Args:
        model: the model.
        chosen: for each dtype, what oneDNN computes. The default is the row of ``CHOICES`` for this processor.
    """
    if chosen is None:
        chosen = {dtype: parts for (vendor, dtype), parts in CHOICES.items() if vendor == processor.vendor() and (
            dtype is not torch.bfloat16 or processor.computes_in_bfloat16())}
    if not is_available() or not chosen:
        return
    _count_flops()
    for module in model.modules():
        if type(module) is Mlp:
            module.__class__ = OneDnnMlp
        elif type(module) is nn.Linear:
            module.__class__ = OneDnnLinear
            module.chosen = chosen


def use_torch(model: nn.Module) -> None:
    """Undo :func:`use_onednn`."""
    for module in model.modules():
        if type(module) is OneDnnMlp:
            module.__class__ = Mlp
        elif type(module) is OneDnnLinear:
            module.__class__ = nn.Linear
            del module.chosen


def _count_flops() -> None:
    """Register the operator's number of operations. torch's flop counter does not know it."""
    if torch.ops.mkldnn._linear_pointwise not in flop_registry:
        @register_flop_formula(torch.ops.mkldnn._linear_pointwise)
        def product_flop(x: tuple[int, ...], weight: tuple[int, ...], *_: Any, out_shape: Any = None) -> int:
            return mm_flop((torch.Size(x[:-1]).numel(), weight[1]), (weight[1], weight[0]))
