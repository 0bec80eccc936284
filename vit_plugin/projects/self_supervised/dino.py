"""Self-distillation with no labels (DINO, arXiv:2104.14294), which MMPretrain does not have."""

from collections.abc import Sequence
from copy import deepcopy
from itertools import pairwise
from typing import Annotated, Any, Literal

import torch
import torch.nn.functional as F
from mmengine.dist import all_reduce
from mmengine.logging import MessageHub
from mmengine.model import BaseAveragedModel, BaseModule
from pydantic import Field
from torch import Tensor, nn

from vit_plugin.arguments.fields import (
    ASCENDING,
    Depth,
    Fraction,
    InitConfig,
    NotNegative,
    Positive,
    PositiveInt,
    Rate,
    Typed,
)
from vit_plugin.errors import ConfigError, leave_out_multimodal, needed_by
from vit_plugin.registry import MODELS

from .dinov2 import block_masks, koleo, sinkhorn_knopp
from .masked import IBOTViT
from .views import MultiViewSelfSupervisor, precise

with needed_by('DINO'):
    leave_out_multimodal()
    from mmpretrain.models.utils import CosineEMA

Momentum = Annotated[float, Field(gt=0, lt=1)]
Shares = Annotated[Sequence[Fraction], Field(min_length=2, max_length=2), ASCENDING]


@MODELS.register_module()
class DINO(MultiViewSelfSupervisor):
    """A student learns the outputs of a teacher, its moving average, which sees only large views.

    Args:
        backbone, neck, head, num_large, data_preprocessor, init_cfg: see
            :class:`~vit_plugin.projects.self_supervised.views.MultiViewSelfSupervisor`. The neck is
            a :class:`DINONeck`, the head a :class:`DINOHead`.
        momentum: weight of the teacher in its moving average, at first. It grows to 1 on a cosine
            over the run.
        mask_ratio: least and largest share of patches that are hidden in half of the student's
            large views, of an ``IBOTViT``; (0.1, 0.5) in DINOv2 (arXiv:2304.07193). The teacher's
            outputs of these patches are learned too (iBOT, arXiv:2111.07832), through the same neck
            and by a second head of the same config.
        koleo_weight: of the loss that spreads the features of large views; 0.1 in DINOv2.

    Raises:
        ConfigError: for fewer than two or ``num_large`` views, or a backbone that hides no patches.
    """

    def __init__(
        self,
        backbone: Typed,
        neck: Typed,
        head: Typed,
        num_large: PositiveInt = 2,
        momentum: Momentum = 0.996,
        mask_ratio: Shares | None = None,
        koleo_weight: NotNegative = 0.0,
        data_preprocessor: Typed | None = None,
        init_cfg: InitConfig = None,
    ) -> None:
        super().__init__(backbone, neck, head, num_large, data_preprocessor, init_cfg)
        self.teacher = self.make_teacher(momentum)
        self.mask_ratio, self.koleo_weight = mask_ratio, koleo_weight
        if mask_ratio:
            self.patch_head = deepcopy(self.head)
            if not self.hides_patches():
                raise ConfigError(
                    "DINO: mask_ratio hides patches; set type='vit_plugin.IBOTViT' of backbone."
                )

    def make_teacher(self, momentum: float) -> BaseAveragedModel:
        """The moving average of the student."""
        return CosineEMA(self.student(), momentum=1 - momentum)

    def hides_patches(self) -> bool:
        """Whether :meth:`encode` takes hidden patches."""
        return isinstance(self.backbone, IBOTViT)

    def loss(
        self, inputs: Sequence[Tensor], data_samples: Any = None, **kwargs: Any
    ) -> dict[str, Tensor]:
        """Views (B, C, H_v, W_v), large ones first -> losses. Updates the teacher beforehand."""
        self.check_views(inputs)
        large = torch.cat(list(inputs[: self.num_large]))
        backbone, neck = self.teacher.module
        with torch.no_grad():
            self.teacher.update_parameters(self.student())
            taught = self.encode(backbone, large)
            targets = neck(taught)[-1].unflatten(0, (self.num_large, -1))
        learned, losses, rest = [], {}, inputs
        if self.mask_ratio:
            grid = tuple(side // self.backbone.strides[-1] for side in large.shape[2:])
            hidden = block_masks(len(large), grid, self.mask_ratio).to(large.device)
            learned, rest = [self.encode(self.backbone, large, hidden)], inputs[self.num_large :]
            student, teacher = (each[0][hidden.flatten(1)] for each in (learned[0], taught))
            losses['loss_patches'] = self.patch_head.patch_loss(
                self.neck((student,))[-1], neck((teacher,))[-1], hidden
            )
            losses |= self.losses_of_patches(learned[0][0], **kwargs)
        learned += self.features(rest)
        if self.koleo_weight:
            vectors = precise(learned[0][-1][: len(large)]).chunk(self.num_large)
            losses['loss_koleo'] = self.koleo_weight * sum(map(koleo, vectors))
        name = 'loss_views' if losses else 'loss'  # the name of the sum in the log
        return {name: self.head.loss(self.outputs(learned, len(inputs)), targets), **losses}

    def losses_of_patches(self, patches: Tensor, **kwargs: Any) -> dict[str, Tensor]:
        """Further losses of the student's patches (num_large * B, h*w, C), which a subclass has.

        Args:
            patches: some of them were hidden.
            **kwargs: what :meth:`loss` was called with.
        """
        return {}

    def train(self, mode: bool = True) -> 'DINO':
        """Set the training mode and return the model.

        The teacher stays in evaluation mode, without dropout and stochastic depth.
        """
        super().train(mode)
        self.teacher.eval()
        return self


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
        layers = [part for a, b in pairwise(widths) for part in (nn.Linear(a, b), nn.GELU())]
        self.mlp = nn.Sequential(*layers[:-1])
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

    The teacher's outputs are centered, so that no prototype wins always, and sharpened, so that not
    all are equal.

    Args:
        out_channels: number of prototypes.
        temperature: of the student.
        teacher_temperature: of the teacher, first and last.
        warmup: the part of the run in which the teacher's temperature goes linearly from the first
            to the last.
        center_momentum: weight of the old center in its moving average.
        centering: ``'mean'`` subtracts the center. ``'sinkhorn_knopp'`` does without it: the
            teacher's distributions use all prototypes equally, as in DINOv2.
        init_cfg: MMEngine's initialization config.
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
        self.register_buffer('center', torch.zeros(out_channels))

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Student (V, B, K) and teacher outputs (G, B, K) of the same first views -> the mean loss.

        Then the center moves to the mean of the teacher's outputs in all processes.
        """
        log_student, teacher = self._log_student(outputs), self._teacher(targets)
        losses = -torch.einsum('gbk,vbk->gv', teacher, log_student) / outputs.shape[1]
        # A view is not compared with itself.
        pairs = 1 - torch.eye(*losses.shape, device=losses.device)
        self._move_center(precise(targets).mean(dim=(0, 1)))
        return (losses * pairs).sum() / pairs.sum()

    def patch_loss(self, outputs: Tensor, targets: Tensor, hidden: Tensor) -> Tensor:
        """Student and teacher outputs (M, K) of hidden patches, True in (N, h, w) -> iBOT's loss.

        It is the mean over images of the mean over patches. Then the center moves as in ``loss``.
        """
        losses = -(self._teacher(targets) * self._log_student(outputs)).sum(dim=-1)
        sums = F.pad(precise(targets).sum(dim=0), (0, 1), value=len(targets))
        all_reduce(sums)  # of numbers of patches that differ
        self._move_center(sums[:-1] / sums[-1].clamp(min=1))
        image = hidden.flatten(1).nonzero()[:, 0]  # (M,)
        return (losses / image.bincount()[image]).sum() / len(hidden)

    def _log_student(self, outputs: Tensor) -> Tensor:
        return F.log_softmax(precise(outputs) / self.temperature, dim=-1)

    def _teacher(self, targets: Tensor) -> Tensor:
        targets, temperature = precise(targets), self._teacher_temperature()
        if self.centering == 'mean':
            return F.softmax((targets - self.center) / temperature, dim=-1)
        return sinkhorn_knopp(targets / temperature)

    def _teacher_temperature(self) -> float:
        hub, (first, last) = MessageHub.get_current_instance(), self.teacher_temperature
        done = hub.get_info('iter', 0) / hub.get_info('max_iters', 1)
        return last if done >= self.warmup else first + (last - first) * done / self.warmup

    @torch.no_grad()
    def _move_center(self, mean: Tensor) -> None:
        all_reduce(mean, 'mean')
        self.center.lerp_(mean.to(self.center.dtype), 1 - self.center_momentum)
