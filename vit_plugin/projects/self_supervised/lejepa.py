"""Views that agree and are distributed as a Gaussian (LeJEPA, arXiv:2511.08544)."""

from collections.abc import Sequence
from typing import Any

import torch
from mmengine.dist import all_reduce, get_world_size
from mmengine.logging import MessageHub
from mmengine.model import BaseModule
from torch import Tensor

from vit_plugin.arguments.fields import (
    InitConfig,
    Positive,
    PositiveInt,
    Rate,
)
from vit_plugin.registry import MODELS

from .views import MultiViewSelfSupervisor, precise

POINTS = 17  # of the integral


@MODELS.register_module()
class LeJEPA(MultiViewSelfSupervisor):
    """A model without a teacher that predicts the mean of an image's large views from each view.

    Args:
        backbone, neck, head, num_large, data_preprocessor, init_cfg: see
            :class:`~vit_plugin.projects.self_supervised.views.MultiViewSelfSupervisor`. The neck is
            such as MMPretrain's ``NonLinearNeck``, the head a :class:`LeJEPAHead`.

    Raises:
        ConfigError: if there are fewer than two views, or fewer than ``num_large``.
    """

    def loss(
        self, inputs: Sequence[Tensor], data_samples: Any = None, **kwargs: Any
    ) -> dict[str, Tensor]:
        """Views (B, C, H_v, W_v), large ones first -> the two terms of the loss."""
        self.check_views(inputs)
        return self.head.loss(self.outputs(self.features(inputs), len(inputs)), self.num_large)


@MODELS.register_module()
class LeJEPAHead(BaseModule):
    """LeJEPA's loss: (1 - weight) * prediction + weight * SIGReg (Definition 2 and Algorithm 2).

    Args:
        weight: of SIGReg, the only setting that the authors tune.
        num_slices: number of random directions on which the embeddings are compared with a
            Gaussian. They are drawn anew in each step, the same in all processes.
        reach: the end of the integral over the characteristic function.
        init_cfg: MMEngine's initialization config.
    """

    def __init__(
        self,
        weight: Rate = 0.02,
        num_slices: PositiveInt = 256,
        reach: Positive = 3.0,
        init_cfg: InitConfig = None,
    ) -> None:
        super().__init__(init_cfg)
        self.weight, self.num_slices, self.reach = weight, num_slices, reach

    def loss(self, embeddings: Tensor, num_large: int) -> dict[str, Tensor]:
        """Embeddings (V, B, K), of large views first -> the two terms of the loss."""
        embeddings = precise(embeddings)
        center = embeddings[:num_large].mean(dim=0)
        return dict(
            loss_prediction=(1 - self.weight) * (embeddings - center).square().mean(),
            loss_sigreg=self.weight * self.sigreg(embeddings),
        )

    def sigreg(self, embeddings: Tensor) -> Tensor:
        """How far each view's embeddings (V, B, K) are from a standard Gaussian (Algorithm 1).

        It is the mean of Epps and Pulley's statistic over the slices.
        """
        size = embeddings.shape[-1], self.num_slices
        step = MessageHub.get_current_instance().get_info('iter', 0)
        generator = torch.Generator(embeddings.device).manual_seed(step)
        slices = torch.randn(size, generator=generator, device=embeddings.device)
        slices = (slices / slices.norm(dim=0)).to(embeddings.dtype)
        points = torch.linspace(0, self.reach, POINTS, device=slices.device, dtype=slices.dtype)
        angles = (embeddings @ slices)[..., None] * points  # (V, B, slices, points)
        real, imaginary = _mean(torch.stack((angles.cos(), angles.sin())).mean(dim=2))
        gaussian = torch.exp(-(points**2) / 2)
        difference = ((real - gaussian) ** 2 + imaginary**2) * gaussian
        # Both halves of the integral, which are equal.
        statistics = 2 * torch.trapezoid(difference, points, dim=-1)
        return statistics.mean() * embeddings.shape[1] * get_world_size()


def _mean(value: Tensor) -> Tensor:
    """The mean over the processes. Its gradient is that of this process; DDP takes the mean."""
    mean = value.detach().clone()
    all_reduce(mean, 'mean')
    return value + (mean - value.detach())
