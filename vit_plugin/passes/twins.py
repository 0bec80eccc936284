"""Compute twin convolutions as one, which is built once."""

from dataclasses import dataclass
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn


@dataclass(eq=False)
class Single:
    """Replaces the forward of a module that one module can replace, see its method ``single``.

    It compares the tensors of the module with those that the one was built of, as
    :class:`~vit_plugin.passes.fold.Folded` does. With ``frozen`` it only looks at what autograd
    counts. In training, with gradients, and while a graph is traced, the module computes itself.
    """

    module: nn.Module
    frozen: bool = False
    # what tells whether the tensors are the same, and the one module
    cached: tuple[list[Any], nn.Module] | None = None

    def __call__(self, x: Tensor) -> Tensor:
        module = self.module
        tensors = [*chain(module.parameters(), module.buffers())]
        if not self._rests(tensors):
            return type(module).forward(module, x)
        cached = self.cached  # other threads may replace self.cached
        if cached is None or not self._same(cached[0], tensors):
            with torch.inference_mode(False):
                self.cached = cached = self._state(tensors), module.single()
        return cached[1](x)

    def _rests(self, tensors: list[Tensor]) -> bool:
        if self.module.training or torch.compiler.is_compiling() or torch.jit.is_tracing():
            return False
        learns = torch.is_grad_enabled() and any(one.requires_grad for one in tensors)
        return not learns and not any(one.is_inference() for one in tensors)

    def _state(self, tensors: list[Tensor]) -> list[Any]:
        if self.frozen:
            return [(one, one.data_ptr(), one._version) for one in tensors]
        return [one.detach().clone() for one in tensors]

    def _same(self, state: list[Any], tensors: list[Tensor]) -> bool:
        if self.frozen:
            return all(
                before is one and (place, version) == (one.data_ptr(), one._version)
                for (before, place, version), one in zip(state, tensors, strict=True)
            )
        return all(
            before.device == one.device and before.dtype == one.dtype and torch.equal(before, one)
            for before, one in zip(state, tensors, strict=True)
        )


def merge(model: nn.Module, frozen: bool = False) -> None:
    """Compute modules with a method ``single`` by the module that it returns.

    Args:
        model: changed in place; names, parameters and state dict stay.
        frozen: see :func:`vit_plugin.passes.optimize`.
    """
    for module in model.modules():
        if hasattr(module, 'single') and 'forward' not in vars(module):
            module.forward = Single(module, frozen)


def split(model: nn.Module) -> None:
    """Undo :func:`merge`."""
    for module in model.modules():
        if isinstance(vars(module).get('forward'), Single):
            del module.forward
