"""A Dice loss for segmentation, per class over all pixels of a batch."""

from collections.abc import Sequence
from typing import Annotated, Any

import torch
from pydantic import Field
from torch import Tensor, nn

from vit_plugin.arguments.fields import NotNegative, Positive
from vit_plugin.errors import ConfigError
from vit_plugin.registry import MODELS


@MODELS.register_module()
class SoftDiceLoss(nn.Module):
    r"""The mean over classes of 1 - (2 sum(p t) + eps) / (sum(p^2) + sum(t^2) + eps).

    p is a softmax probability, t is 1 at the pixels of the class and otherwise 0, and sums are over
    the pixels of all images in the batch. It is the loss of TransUNet's code, with squares as in
    V-Net (arXiv:1606.04797). MMSegmentation's ``DiceLoss`` sums over all classes of an image at
    once, and counts the predictions at ignored pixels as wrong.

    Args:
        class_weight: factor of each class. Default: 1 for all.
        loss_weight: factor of the loss.
        eps: small number that makes the loss 0 for a class that is neither true nor predicted.
        loss_name: name of the loss in the logs. It must begin with ``loss_``, since MMEngine
            trains only what has ``loss`` in its name.

    Raises:
        ConfigError: in the forward, if ``class_weight`` has another number of classes.
    """

    def __init__(
        self,
        class_weight: Sequence[NotNegative] | None = None,
        loss_weight: NotNegative = 1.0,
        eps: Positive = 1e-5,
        loss_name: Annotated[str, Field(pattern='^loss_')] = 'loss_dice',
    ) -> None:
        super().__init__()
        self.class_weight, self.loss_weight, self.eps = class_weight, loss_weight, eps
        self.loss_name = loss_name

    def forward(
        self,
        logits: Tensor,
        labels: Tensor,
        weight: Tensor | None = None,
        ignore_index: int | None = 255,
        **kwargs: Any,
    ) -> Tensor:
        """Logits (B, C, H, W) and labels (B, H, W) -> the loss, in float32 or finer.

        Args:
            logits: for C classes, or for one class (label 1) against the background.
            labels: class of each pixel.
            weight: factor of each pixel (B, H, W), from MMSegmentation's samplers.
            ignore_index: label of ignored pixels.
            **kwargs: arguments of other losses, ignored.
        """
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        num_classes = logits.shape[1]
        if num_classes == 1:  # against the background, which has the label 0
            p, first_label = logits.sigmoid(), 1
        else:
            p, first_label = logits.softmax(dim=1), 0
        classes = torch.arange(first_label, first_label + num_classes, device=labels.device)
        t = (labels[:, None] == classes[:, None, None]).to(p.dtype)  # (B, C, H, W)
        pixel_weights = torch.ones_like(p[:, 0]) if weight is None else weight.to(p.dtype)
        pixel_weights = (pixel_weights * (labels != ignore_index))[:, None]  # (B, 1, H, W)

        def total(x: Tensor) -> Tensor:
            return (x * pixel_weights).sum((0, 2, 3))  # (C,)

        # t is 0 or 1, so it equals its square.
        dice = (2 * total(p * t) + self.eps) / (total(p * p) + total(t) + self.eps)
        return self.loss_weight * (self._class_weights(p) * (1 - dice)).mean()

    def _class_weights(self, p: Tensor) -> Tensor:
        """The factors of the classes (C,), on the device of the probabilities."""
        if self.class_weight is None:
            return p.new_ones(p.shape[1])
        if len(self.class_weight) != p.shape[1]:
            raise ConfigError(
                f'SoftDiceLoss: class_weight has {len(self.class_weight)} values, but the head has '
                f'{p.shape[1]} classes; give one for each.'
            )
        return p.new_tensor(self.class_weight)
