"""Self-distillation with no labels (DINO, arXiv:2104.14294), which MMPretrain lacks."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Annotated, Any

import torch
from mmengine.model import BaseAveragedModel
from pydantic import Field
from torch import Tensor

from vit_plugin.arguments.fields import (
    ASCENDING,
    Fraction,
    InitConfig,
    NotNegative,
    PositiveInt,
    Typed,
)
from vit_plugin.errors import ConfigError, needed_by
from vit_plugin.importable import make_importable
from vit_plugin.registry import MODELS

from .dinov2 import block_masks, koleo
from .masked import IBOTViT
from .views import MultiViewSelfSupervisor, at_least_float32

with needed_by('DINO'):
    make_importable()
    from mmpretrain.models.utils import CosineEMA

Momentum = Annotated[float, Field(gt=0, lt=1)]
Shares = Annotated[Sequence[Fraction], Field(min_length=2, max_length=2), ASCENDING]


@MODELS.register_module()
class DINO(MultiViewSelfSupervisor):
    """A student learns the outputs of a teacher, its exponential moving average (EMA).

    The teacher sees only the large views.

    Args:
        backbone, neck, head, num_large, data_preprocessor, init_cfg: see
            :class:`~vit_plugin.projects.self_supervised.views.MultiViewSelfSupervisor`. The neck is
            a :class:`DINONeck`, the head a :class:`DINOHead`.
        momentum: weight of the teacher in its moving average, at first. It grows to 1 on a cosine
            over the run.
        mask_ratio: range of the fraction of patches masked in half of the student's large views,
            for an ``IBOTViT``; (0.1, 0.5) in DINOv2 (arXiv:2304.07193). The student also learns the
            teacher's outputs for these patches (iBOT, arXiv:2111.07832), through the same neck and
            a second head with the same config.
        koleo_weight: weight of the loss that spreads the features of large views; 0.1 in DINOv2.

    Raises:
        ConfigError: for fewer than two or ``num_large`` views, or if ``mask_ratio`` is given and
            the backbone cannot mask patches.
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
        """The exponential moving average of the student."""
        return CosineEMA(self.student(), momentum=1 - momentum)

    def hides_patches(self) -> bool:
        """Whether :meth:`encode` takes masked patches."""
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
            teacher_features = self.encode(backbone, large)
            targets = neck(teacher_features)[-1].unflatten(0, (self.num_large, -1))
        student_features, losses, unmasked = [], {}, inputs
        if self.mask_ratio:
            grid = tuple(side // self.backbone.strides[-1] for side in large.shape[2:])
            mask = block_masks(len(large), grid, self.mask_ratio).to(large.device)
            student_features = [self.encode(self.backbone, large, mask)]
            unmasked = inputs[self.num_large :]
            student = student_features[0][0][mask.flatten(1)]
            teacher = teacher_features[0][mask.flatten(1)]
            losses['loss_patches'] = self.patch_head.patch_loss(
                self.neck((student,))[-1], neck((teacher,))[-1], mask
            )
            losses |= self.losses_of_patches(student_features[0][0], **kwargs)
        student_features += self.features(unmasked)
        if self.koleo_weight:
            # The features of large views come first.
            vectors = at_least_float32(student_features[0][-1][: len(large)]).chunk(self.num_large)
            losses['loss_koleo'] = self.koleo_weight * sum(map(koleo, vectors))
        name = 'loss_views' if losses else 'loss'  # MMEngine logs a sum as `loss`
        loss = self.head.loss(self.projections(student_features, len(inputs)), targets)
        return {name: loss, **losses}

    def losses_of_patches(self, patches: Tensor, **kwargs: Any) -> dict[str, Tensor]:
        """Additional losses of a subclass on the student's patches (num_large * B, h*w, C).

        Args:
            patches: some of them were masked.
            **kwargs: further arguments of :meth:`loss`.
        """
        return {}

    def train(self, mode: bool = True) -> 'DINO':
        """Set the training mode and return the model.

        The teacher stays in evaluation mode, without dropout and stochastic depth.
        """
        super().train(mode)
        self.teacher.eval()
        return self
