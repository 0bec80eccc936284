"""Self-distillation with no labels (DINO, arXiv:2104.14294), which MMPretrain lacks.

With ``mask_ratio`` and ``koleo_weight`` it has DINOv2's objective: DINO's loss on the class token,
iBOT's on masked patches, and KoLeo.
"""

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

from .dino_head import DINOHead, DINONeck
from .dinov2 import block_masks, koleo
from .masked import IBOTViT
from .views import MultiViewSelfSupervisor, at_least_float32

with needed_by('DINO'):
    make_importable()
    from mmpretrain.models.utils import CosineEMA

Momentum = Annotated[float, Field(gt=0, lt=1)]
FractionRange = Annotated[Sequence[Fraction], Field(min_length=2, max_length=2), ASCENDING]


@MODELS.register_module()
class DINO(MultiViewSelfSupervisor):
    """A student learns the outputs of a teacher, its exponential moving average (EMA).

    The teacher sees only the large views (global crops).

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
        ConfigError: for fewer than two or ``num_large`` views, if neck and head have different
            ``out_channels``, or if ``mask_ratio`` is given and the backbone cannot mask patches.
    """

    def __init__(
        self,
        backbone: Typed,
        neck: Typed,
        head: Typed,
        num_large: PositiveInt = 2,
        momentum: Momentum = 0.996,
        mask_ratio: FractionRange | None = None,
        koleo_weight: NotNegative = 0.0,
        data_preprocessor: Typed | None = None,
        init_cfg: InitConfig = None,
    ) -> None:
        super().__init__(backbone, neck, head, num_large, data_preprocessor, init_cfg)
        if isinstance(self.neck, DINONeck) and isinstance(self.head, DINOHead):
            in_neck, in_head = len(self.neck.prototypes), len(self.head.center)
            if in_neck != in_head:
                raise ConfigError(
                    f'DINO: out_channels is {in_neck} in neck and {in_head} in head; make them '
                    'equal.'
                )
        self.teacher = self.make_teacher(momentum)
        self.mask_ratio, self.koleo_weight = mask_ratio, koleo_weight
        if mask_ratio:
            self.patch_head = deepcopy(self.head)
            if not self.can_mask_patches():
                raise ConfigError(
                    "DINO: mask_ratio masks patches; set type='vit_plugin.IBOTViT' of backbone."
                )

    def make_teacher(self, momentum: float) -> BaseAveragedModel:
        """The exponential moving average of the student."""
        # MMEngine's momentum is the weight of the new value.
        return CosineEMA(self.student(), momentum=1 - momentum)

    def can_mask_patches(self) -> bool:
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
            patches = student_features[0][0]  # (num_large * B, h*w, C)
            student_patches = patches[mask.flatten(1)]  # (M, C), the masked ones
            teacher_patches = teacher_features[0][mask.flatten(1)]
            losses['loss_patches'] = self.patch_head.patch_loss(
                self.neck((student_patches,))[-1], neck((teacher_patches,))[-1], mask
            )
            losses |= self.additional_patch_losses(patches, **kwargs)
        student_features += self.features(unmasked)
        if self.koleo_weight:
            # The large views are the first in the first batch.
            vectors = at_least_float32(student_features[0][-1][: len(large)]).chunk(self.num_large)
            losses['loss_koleo'] = self.koleo_weight * sum(map(koleo, vectors))
        # MMEngine logs the sum of several losses as `loss`, so none of them may have that name.
        name = 'loss_views' if losses else 'loss'
        loss = self.head.loss(self.projections(student_features, len(inputs)), targets)
        return {name: loss, **losses}

    def additional_patch_losses(self, patches: Tensor, **kwargs: Any) -> dict[str, Tensor]:
        """Losses that a subclass adds, by their names in the log.

        Args:
            patches: the student's features of all patches of the large views (num_large * B, h*w,
                C). Some patches were masked.
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
