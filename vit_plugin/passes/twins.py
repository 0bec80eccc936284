"""Fuse parallel convolutions whose outputs are added (twins) into one convolution.

A module with twins has a method ``fused_twins``, which returns a module that computes the same in
eval mode with one convolution: a RepVGG block such as
:class:`~vit_plugin.projects.detr_family.rep_conv.RepConv`.
"""

from dataclasses import dataclass
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from .tensor_states import change_detector


@dataclass(eq=False)
class FusedForward:
    """Replaces a module's forward by that of the module that its method ``fused_twins`` returns.

    It fuses again if a tensor of the module has changed. In training, with gradients, and while a
    graph is traced, the original forward runs.

    Attributes:
        module: the module with twins.
        frozen: see :func:`~vit_plugin.passes.tensor_states.change_detector`.
    """

    module: nn.Module
    frozen: bool = False
    # The states of the tensors when they were fused, and the fused module.
    cached: tuple[list[Any], nn.Module] | None = None

    def __call__(self, x: Tensor) -> Tensor:
        module = self.module
        tensors = [*chain(module.parameters(), module.buffers())]
        if not self._may_reuse(tensors):
            return type(module).forward(module, x)
        state_of, has_state = change_detector(self.frozen)
        cached = self.cached  # a local name, since other threads may replace self.cached
        if cached is None or not all(map(has_state, cached[0], tensors)):
            # An inference tensor could not be trained later.
            with torch.inference_mode(False), torch.no_grad():
                self.cached = cached = [*map(state_of, tensors)], module.fused_twins()
        return cached[1](x)

    def _may_reuse(self, tensors: list[Tensor]) -> bool:
        """True if the fused module may run."""
        if self.module.training or torch.compiler.is_compiling() or torch.jit.is_tracing():
            return False
        needs_grad = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
        return not needs_grad and not any(tensor.is_inference() for tensor in tensors)


def fuse_twins(model: nn.Module, frozen: bool = False) -> None:
    """In place of each module with a method ``fused_twins``, run the module that it returns.

    Args:
        model: the model, which is changed in place. Names, parameters and state dict stay.
        frozen: see :func:`vit_plugin.passes.optimize`.
    """
    for module in model.modules():
        if hasattr(module, 'fused_twins') and 'forward' not in vars(module):
            module.forward = FusedForward(module, frozen)


def unfuse_twins(model: nn.Module) -> None:
    """Undo :func:`fuse_twins`."""
    for module in model.modules():
        if isinstance(vars(module).get('forward'), FusedForward):
            del module.forward
