"""Merge twin convolutions into one, which is built once."""

from dataclasses import dataclass
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from .tensor_states import memory


@dataclass(eq=False)
class Single:
    """Replaces a module's forward by that of the module that its method ``single`` returns.

    It checks that the tensors of the module are unchanged, see :func:`~.tensor_states.memory`. In
    training, with gradients, and while a graph is traced, the original forward runs.
    """

    module: nn.Module
    frozen: bool = False
    # state of the tensors, and the single module
    cached: tuple[list[Any], nn.Module] | None = None

    def __call__(self, x: Tensor) -> Tensor:
        module = self.module
        tensors = [*chain(module.parameters(), module.buffers())]
        if not self._rests(tensors):
            return type(module).forward(module, x)
        remember, same = memory(self.frozen)
        cached = self.cached  # other threads may replace self.cached
        if cached is None or not all(map(same, cached[0], tensors)):
            with torch.inference_mode(False), torch.no_grad():
                self.cached = cached = [*map(remember, tensors)], module.single()
        return cached[1](x)

    def _rests(self, tensors: list[Tensor]) -> bool:
        if self.module.training or torch.compiler.is_compiling() or torch.jit.is_tracing():
            return False
        learns = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
        return not learns and not any(tensor.is_inference() for tensor in tensors)


def merge_twins(model: nn.Module, frozen: bool = False) -> None:
    """Run the module that a method ``single`` returns in place of each module that has one.

    Args:
        model: changed in place; names, parameters and state dict stay.
        frozen: see :func:`vit_plugin.passes.optimize`.
    """
    for module in model.modules():
        if hasattr(module, 'single') and 'forward' not in vars(module):
            module.forward = Single(module, frozen)


def split_twins(model: nn.Module) -> None:
    """Undo :func:`merge_twins`."""
    for module in model.modules():
        if isinstance(vars(module).get('forward'), Single):
            del module.forward
