"""DINOv3's objective (arXiv:2508.10104), to continue the training of a published backbone.

It extends DINO with masked patches by the Gram anchor, which keeps the similarities between patches
from degrading in a long training.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from vit_plugin.arguments.fields import ASCENDING, Fraction, NotNegative, PositiveInt
from vit_plugin.errors import ConfigError
from vit_plugin.models import VisionTransformer
from vit_plugin.registry import MODELS

from .gram_loss import Negatives, gram_loss
from .partial_copy import PartialCopy

# From the registry, since a project imports no other.
Base: Any = object if TYPE_CHECKING else MODELS.get('vit_plugin.DINO')


@MODELS.register_module()
class DINOv3(Base):
    """A :class:`DINO` with masked patches and KoLeo, regularized by a Gram anchor.

    The anchor is a frozen earlier teacher, at first the initial backbone. The similarities between
    the student's patches of an image should match the anchor's (Section 4.2). Teacher and anchor
    share the student's frozen weights, so that LoRA or ``frozen_stages`` cost little memory.
    Patches are masked after the stem, by a token of this model, so that the backbone needs no
    changes. It may also be a ``WindowedViT``, whose class tokens are averaged.

    Args:
        gram_weight: weight of the anchor's loss; 2 in the paper. 0: no anchor.
        gram_refresh: interval in steps at which the anchor becomes a copy of the teacher; 10,000 in
            the paper. None: never.
        gram_scale: size of the anchor's images relative to the student's; 2 in the paper (Section
            4.3). The pipeline yields large views of the anchor's size, which are reduced for
            student and teacher. The anchor's feature maps are resized to those of the student.
        gram_negatives: see :func:`~vit_plugin.projects.dinov3.gram_loss.gram_loss`.
        frozen_dtype: the precision of the frozen linear layers in the blocks. With ``'bfloat16'``
            the run needs mixed precision. None: that of the backbone.
        mask_ratio, koleo_weight, **kwargs: see ``DINO``.

    Raises:
        ConfigError: for a backbone that is not a plain ``VisionTransformer``, or a frozen precision
            without mixed precision.
    """

    def __init__(
        self,
        gram_weight: NotNegative = 2.0,
        gram_refresh: PositiveInt | None = None,
        gram_scale: PositiveInt = 1,
        gram_negatives: Negatives = 'kept',
        frozen_dtype: Literal['bfloat16'] | None = None,
        mask_ratio: Annotated[Sequence[Fraction], Field(min_length=2, max_length=2), ASCENDING] = (
            0.1,
            0.5,
        ),
        koleo_weight: NotNegative = 0.1,
        **kwargs: Any,
    ) -> None:
        super().__init__(mask_ratio=mask_ratio, koleo_weight=koleo_weight, **kwargs)
        self.gram_weight, self.gram_refresh = gram_weight, gram_refresh
        self.gram_scale, self.gram_negatives = gram_scale, gram_negatives
        self.frozen_dtype = getattr(torch, frozen_dtype) if frozen_dtype else None
        self.mask_token = nn.Parameter(torch.empty(self.backbone.embed_dims))
        nn.init.normal_(self.mask_token, std=0.02)
        self.anchor = PartialCopy(self.backbone) if gram_weight else None
        self._lower_precision()

    def make_teacher(self, momentum: float) -> PartialCopy:
        """See the base class. The teacher shares the student's frozen weights."""
        return PartialCopy(self.student(), momentum)

    def copy_again(self) -> None:
        """See :class:`~vit_plugin.models.protocol.HasCopies`."""
        self.teacher.copy_again(self.student())
        if self.anchor:
            self.anchor.copy_again(self.backbone)
        self._lower_precision()

    def can_mask_patches(self) -> bool:
        """True: patches are masked after the stem of any plain backbone.

        Raises:
            ConfigError: if a CNN would see the masked patches, or for another kind of backbone.
        """
        if (
            not isinstance(self.backbone, VisionTransformer)
            or self.backbone.patch_embed.feature_channels
        ):
            raise ConfigError(
                'DINOv3: the backbone must be a vit_plugin.VisionTransformer without a CNN, which '
                'would see the patches that are hidden after it; take vit_plugin.DINO with '
                'vit_plugin.IBOTViT.'
            )
        return True

    def encode(
        self, backbone: VisionTransformer, images: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Images (B, 3, H, W) -> normed patches (B, h*w, C) and the vector of each image (B, C).

        The vector is the class token, or the mean of the patches if there is none.

        Args:
            backbone: that of the student, the teacher or the anchor.
            images: normalized images.
            mask: True for patches (B, h, w) that are replaced by the mask token.

        Raises:
            ConfigError: if the mask does not have the size of the images in patches.
        """
        x, grid, _ = backbone.patch_embed(images)
        if mask is not None:
            if tuple(mask.shape[1:]) != tuple(grid):
                raise ConfigError(
                    f'DINOv3: large views of {images.shape[2]} x {images.shape[3]} pixels are not '
                    f'of whole patches of {backbone.patch_embed.stride} pixels; change their size.'
                )
            x = torch.where(mask.flatten(1)[..., None], self.mask_token.to(x.dtype), x)
        *_, x = backbone.tokens(x, grid)  # (B, class tokens + registers + h*w, C)
        prefix, patches = x.split([x.shape[1] - grid[0] * grid[1], grid[0] * grid[1]], dim=1)
        if 'cls_token' not in backbone.prefix_tokens:
            return patches, patches.mean(dim=1)
        # A WindowedViT has a class token for each window, all in front of the other prefix tokens.
        return patches, prefix[:, : prefix.shape[1] - backbone.num_prefix_tokens + 1].mean(dim=1)

    def loss(
        self, inputs: Sequence[Tensor], data_samples: Any = None, **kwargs: Any
    ) -> dict[str, Tensor]:
        """Views (B, 3, H_v, W_v), large ones first -> losses; see ``DINO`` and ``gram_scale``."""
        self.check_views(inputs)
        if self.frozen_dtype and not torch.is_autocast_enabled(inputs[0].device.type):
            raise ConfigError(
                'DINOv3: frozen_dtype lowers the precision of frozen layers alone, which takes '
                'mixed precision; train with --amp, or leave frozen_dtype out.'
            )
        large, small = list(inputs[: self.num_large]), list(inputs[self.num_large :])
        reduced = [shrink(view, self.gram_scale) for view in large]
        return super().loss([*reduced, *small], data_samples, finer=torch.cat(large))

    def additional_patch_losses(self, patches: Tensor, finer: Tensor) -> dict[str, Tensor]:
        """The Gram loss of the student's patches (B, h*w, C).

        Args:
            patches: the student's patches. Some were masked, as in the paper.
            finer: the same views (B, 3, H, W) at the size of the anchor's images.
        """
        if not self.anchor:
            return {}
        step = int(self.teacher.steps) - 1  # `loss` has already updated the teacher
        if step == 0 or (self.gram_refresh and step % self.gram_refresh == 0):
            self.anchor.assign(self.teacher.module[0])  # its backbone; the other entry is the neck
        with torch.no_grad():
            target, _ = self.encode(self.anchor.module, finer)
            if self.gram_scale > 1:
                fine, coarse = (
                    [side // scale // self.backbone.strides[-1] for side in finer.shape[2:]]
                    for scale in (1, self.gram_scale)
                )
                maps = target.mT.unflatten(2, fine)
                # Without antialiasing, like facebookresearch/dinov3.
                target = F.interpolate(maps, coarse, mode='bicubic', align_corners=False)
                target = target.flatten(2).mT  # (B, h*w, C)
        loss = gram_loss(patches.to(target.dtype), target, self.gram_negatives)
        return dict(loss_gram=self.gram_weight * loss)

    def train(self, mode: bool = True) -> 'DINOv3':
        """Set the training mode. Teacher and anchor stay in evaluation mode. Returns the model."""
        super().train(mode)
        if self.anchor:
            self.anchor.eval()
        return self

    def _lower_precision(self) -> None:
        """Set the dtype of frozen linear layers in the blocks. The copies share these layers."""
        for layer in self.backbone.blocks.modules():
            if self.frozen_dtype and isinstance(layer, nn.Linear):
                for parameter in layer.parameters():
                    if not parameter.requires_grad:
                        parameter.data = parameter.data.to(self.frozen_dtype)


def shrink(images: Tensor, scale: int) -> Tensor:
    """Images (B, 3, scale * H, scale * W) -> (B, 3, H, W)."""
    if scale == 1:
        return images
    size = [side // scale for side in images.shape[2:]]
    return F.interpolate(images, size, mode='bilinear', antialias=True)
