"""LW-DETR's classification loss, whose targets depend on the IoU of each matched box."""

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_plugin.arguments.fields import Positive, Rate
from vit_plugin.errors import needed_by
from vit_plugin.importable import make_importable
from vit_plugin.registry import MODELS

with needed_by('IoUAwareBCELoss'):
    make_importable()
    from mmdet.models.losses import QualityFocalLoss


@MODELS.register_module()
class IoUAwareBCELoss(QualityFocalLoss):
    """The IoU-aware loss of LW-DETR (arXiv:2406.03459), after Align-DETR's (arXiv:2304.07527).

    Let s be the score of a query for the class of its object, u the IoU of their boxes, and
    t = max(s^alpha u^(1 - alpha), 0.01). The loss is -t log s - (1 - t) log(1 - s). For any other
    class, and for queries without an object, it is -s^gamma log(1 - s).

    The base class makes a head pass the IoUs, see ``GroupedDETRHead``.

    Args:
        alpha, gamma: exponents in the formulas.
        loss_weight: factor of the loss.
    """

    def __init__(
        self, alpha: Rate = 0.25, gamma: Positive = 2.0, loss_weight: Positive = 1.0
    ) -> None:
        super().__init__(beta=gamma, loss_weight=loss_weight)
        self.alpha = alpha

    def forward(
        self,
        pred: Tensor,
        target: tuple[Tensor, Tensor],
        weight: Tensor | None = None,
        avg_factor: float | Tensor = 1.0,
    ) -> Tensor:
        """The sum of the losses, divided by ``avg_factor``.

        Args:
            pred: logits (N, C).
            target: classes (N,), where C stands for no object, and IoUs (N,).
            weight: weight of each query (N,).
            avg_factor: divisor of the sum.
        """
        labels, ious = target
        scores = pred.sigmoid()
        matched = F.one_hot(labels, pred.shape[1] + 1)[:, :-1].bool()
        quality = (scores**self.alpha * ious[:, None] ** (1 - self.alpha)).clamp(min=0.01).detach()
        positive = torch.where(matched, quality, 0)
        negative = torch.where(matched, 1 - quality, scores**self.beta)
        loss = -positive * F.logsigmoid(pred) - negative * F.logsigmoid(-pred)
        weight = 1 if weight is None else weight[:, None]
        return self.loss_weight * (loss * weight).sum() / avg_factor
