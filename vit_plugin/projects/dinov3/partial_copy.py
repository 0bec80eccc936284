"""A copy of a model that shares its frozen weights, for the teacher and the anchor of DINOv3."""

import math
from copy import deepcopy

import torch
from mmengine.logging import MessageHub
from mmengine.model import BaseAveragedModel
from torch import nn


class PartialCopy(BaseAveragedModel):
    """A copy of a model with its own trained weights and shared frozen ones.

    With adapters or few trained blocks, copies cost next to no memory. Of the base class, only the
    forward is used, and that it is the class of teachers; weights are averaged here.

    Args:
        model: the model. Its frozen parameters are shared; nothing else of it is kept.
        momentum: initial weight of the copy in :meth:`update_parameters`. It grows to 1 on a cosine
            over the run. Unused without that method, as by an anchor.

    Attributes:
        module: the copy.
        steps: number of calls of :meth:`update_parameters`.
    """

    steps: torch.Tensor

    def __init__(self, model: nn.Module, momentum: float = 0.0) -> None:
        nn.Module.__init__(self)  # the base class would copy all weights
        self.momentum = momentum
        self.register_buffer('steps', torch.tensor(0))
        self.copy_again(model)

    def copy_again(self, model: nn.Module) -> None:
        """Copy a model again after its set of trained parameters has changed."""
        # The memo of `deepcopy`: objects that it takes as they are, by their id.
        frozen = {
            id(parameter): parameter
            for parameter in model.parameters()
            if not parameter.requires_grad
        }
        self.module = deepcopy(model, frozen).requires_grad_(False).eval()

    @torch.no_grad()
    def assign(self, model: nn.Module, share: float = 1.0) -> None:
        """Move the copy towards the weights of a model by this share of the difference.

        Buffers stay as they were copied.
        """
        for copied, source in zip(self.module.parameters(), model.parameters(), strict=True):
            if copied is not source:  # else a shared frozen parameter
                copied.copy_(source) if share == 1 else copied.lerp_(source, share)

    def update_parameters(self, model: nn.Module) -> None:
        """Copy a model's weights the first time, then update their exponential moving average."""
        hub = MessageHub.get_current_instance()
        progress = min(hub.get_info('iter', 0) / hub.get_info('max_iters', 1), 1)
        share = (1 - self.momentum) * (1 + math.cos(math.pi * progress)) / 2
        self.assign(model, share if self.steps else 1.0)
        self.steps += 1
