"""DINO's projection head, as a neck, and its loss, as a head (arXiv:2104.14294).

The authors call the first one the head. Here the names follow MMPretrain, where heads compute
losses.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Literal

import torch
import torch.nn.functional as F
from mmengine.dist import all_reduce
from mmengine.logging import MessageHub
from mmengine.model import BaseModule
from pydantic import Field
from torch import Tensor, nn

from vit_plugin.arguments.fields import (
    Depth,
    Fraction,
    InitConfig,
    Positive,
    PositiveInt,
    Rate,
)
from vit_plugin.errors import ConfigError
from vit_plugin.registry import MODELS

from .dinov2 import sinkhorn_knopp
from .views import at_least_float32

# The teacher's outputs are cosines, at most 1. From this temperature on, sums of
# exp(cosine / temperature) are finite in float32.
MIN_SINKHORN_TEMPERATURE = 0.015


@MODELS.register_module()
class DINONeck(BaseModule):
    """DINO's projection: an MLP to a narrow unit vector, and its products with unit prototypes.

    Args:
        in_channels: width of the features.
        hid_channels: width of the MLP's hidden layers.
        bottleneck: width of the unit vector.
        out_channels: number of prototypes.
        num_layers: number of linear layers before the prototypes.
        init_cfg: MMEngine's initialization config.

    Shape: a tuple of features, the last of them (B, in_channels) -> a tuple of one tensor (B,
    out_channels).
    """

    def __init__(
        self,
        in_channels: PositiveInt,
        hid_channels: PositiveInt = 2048,
        bottleneck: PositiveInt = 256,
        out_channels: PositiveInt = 65536,
        num_layers: Depth = 3,
        init_cfg: InitConfig = None,
    ) -> None:
        super().__init__(init_cfg)
        widths = [in_channels, *[hid_channels] * (num_layers - 1), bottleneck]
        layers = [layer for a, b in pairwise(widths) for layer in (nn.Linear(a, b), nn.GELU())]
        self.mlp = nn.Sequential(*layers[:-1])  # without a GELU at the end
        self.prototypes = nn.Parameter(torch.empty(out_channels, bottleneck))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.prototypes)
        for layer in self.mlp:
            if isinstance(layer, nn.Linear):
                nn.init.trunc_normal_(layer.weight, std=0.02)
                nn.init.zeros_(layer.bias)

    def forward(self, features: Sequence[Tensor]) -> tuple[Tensor]:
        x = F.normalize(self.mlp(features[-1]), dim=-1)  # (B, bottleneck)
        return (F.linear(x, F.normalize(self.prototypes, dim=-1)),)


@MODELS.register_module()
class DINOHead(BaseModule):
    """DINO's loss: the cross entropy between teacher and student on different views (Equation 3).

    The teacher's outputs are centered, so that no prototype always wins, and sharpened, so that
    they do not become uniform.

    Args:
        out_channels: number of prototypes.
        temperature: temperature of the student.
        teacher_temperature: initial and final temperature of the teacher.
        warmup: fraction of the run in which the teacher's temperature changes linearly.
        center_momentum: weight of the old center in its moving average.
        centering: ``'mean'`` subtracts the center. ``'sinkhorn_knopp'`` needs no center: the
            teacher's distributions use all prototypes equally, as in DINOv2.
        init_cfg: MMEngine's initialization config.

    Raises:
        ConfigError: for a temperature with which ``'sinkhorn_knopp'`` would overflow.
    """

    def __init__(
        self,
        out_channels: PositiveInt,
        temperature: Positive = 0.1,
        teacher_temperature: Annotated[Sequence[Positive], Field(min_length=2, max_length=2)] = (
            0.04,
            0.04,
        ),
        warmup: Fraction = 0.0,
        center_momentum: Rate = 0.9,
        centering: Literal['mean', 'sinkhorn_knopp'] = 'mean',
        init_cfg: InitConfig = None,
    ) -> None:
        super().__init__(init_cfg)
        self.temperature, self.teacher_temperature = temperature, tuple(teacher_temperature)
        self.warmup, self.center_momentum, self.centering = warmup, center_momentum, centering
        if centering == 'sinkhorn_knopp' and min(teacher_temperature) < MIN_SINKHORN_TEMPERATURE:
            raise ConfigError(
                f'DINOHead: teacher_temperature={tuple(teacher_temperature)} is too low for '
                f"centering='sinkhorn_knopp'; give {MIN_SINKHORN_TEMPERATURE} or more, or "
                "centering='mean'."
            )
        self.register_buffer('center', torch.zeros(out_channels))

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Outputs of student (V, B, K) and teacher (G, B, K) -> the mean loss over pairs of views.

        The student has V views of B images, and the teacher only the first G of them; K is the
        number of prototypes. Afterwards the center is updated with the mean of the teacher's
        outputs over all processes.
        """
        log_student, teacher = self._student_log_probs(outputs), self._teacher_probs(targets)
        losses = -torch.einsum('gbk,vbk->gv', teacher, log_student) / outputs.shape[1]
        # A view is not compared with itself.
        pairs = 1 - torch.eye(*losses.shape, device=losses.device)
        self._move_center(at_least_float32(targets).mean(dim=(0, 1)))
        return (losses * pairs).sum() / pairs.sum()

    def patch_loss(self, outputs: Tensor, targets: Tensor, mask: Tensor) -> Tensor:
        """Student and teacher outputs (M, K) of masked patches -> iBOT's loss.

        These patches are True in ``mask`` (N, h, w). The loss is the mean over images of the mean
        over masked patches, 0 for an image without any. Afterwards the center is updated as in
        :meth:`loss`.
        """
        losses = -(self._teacher_probs(targets) * self._student_log_probs(outputs)).sum(dim=-1)
        # Ranks have different numbers of patches, so their means cannot be averaged. The number of
        # patches is appended to the sum, and both are reduced at once.
        sums = F.pad(at_least_float32(targets).sum(dim=0), (0, 1), value=len(targets))
        all_reduce(sums)
        self._move_center(sums[:-1] / sums[-1].clamp(min=1))
        image = mask.flatten(1).nonzero()[:, 0]  # (M,)
        return (losses / image.bincount()[image]).sum() / len(mask)

    def _student_log_probs(self, outputs: Tensor) -> Tensor:
        return F.log_softmax(at_least_float32(outputs) / self.temperature, dim=-1)

    def _teacher_probs(self, targets: Tensor) -> Tensor:
        targets, temperature = at_least_float32(targets), self._teacher_temperature()
        if self.centering == 'mean':
            return F.softmax((targets - self.center) / temperature, dim=-1)
        return sinkhorn_knopp(targets / temperature)

    def _teacher_temperature(self) -> float:
        hub, (first, last) = MessageHub.get_current_instance(), self.teacher_temperature
        progress = hub.get_info('iter', 0) / hub.get_info('max_iters', 1)
        return last if progress >= self.warmup else first + (last - first) * progress / self.warmup

    @torch.no_grad()
    def _move_center(self, mean: Tensor) -> None:
        all_reduce(mean, 'mean')
        self.center.lerp_(mean.to(self.center.dtype), 1 - self.center_momentum)
