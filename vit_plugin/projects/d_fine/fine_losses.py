"""The losses of D-FINE and DEIM: IoU-aware classification, and distributions of side distances."""

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_plugin.arguments.fields import NotNegative, Positive
from vit_plugin.errors import needed_by
from vit_plugin.importable import make_importable
from vit_plugin.registry import MODELS

from .fine_boxes import Bins

with needed_by('OverlapVarifocalLoss'):
    make_importable()
    from mmdet.models.losses import QualityFocalLoss

# Temperature for distilling the last layer's distributions into the others.
DISTILLATION_TEMPERATURE = 5.0


@MODELS.register_module()
class OverlapVarifocalLoss(QualityFocalLoss):
    """RT-DETR's loss (arXiv:2304.08069), after the varifocal loss of arXiv:2008.13367.

    With the score s and the overlap (IoU) u of a matched box, the loss of its class is u times the
    cross-entropy of s and u. For any other class it is alpha s^gamma times the cross-entropy of s
    and 0.

    Args:
        alpha, gamma: see the formulas.
        loss_weight: factor of the loss.
    """

    def __init__(
        self, alpha: NotNegative = 0.75, gamma: Positive = 2.0, loss_weight: NotNegative = 1.0
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
        """Logits (N, C), classes (N,) and overlaps (N,) -> the sum divided by ``avg_factor``.

        Class C stands for no object.
        """
        labels, overlaps = target
        matched = labels[:, None] == torch.arange(pred.shape[1], device=pred.device)
        targets, matched_weights = self.score_targets(matched, overlaps[:, None])
        other_weights = self.alpha * pred.detach().sigmoid() ** self.beta
        weights = torch.where(matched, matched_weights, other_weights)
        if weight is not None:
            weights = weights * weight[:, None]
        loss = F.binary_cross_entropy_with_logits(pred, targets, weights, reduction='sum')
        return self.loss_weight * loss / avg_factor

    def score_targets(self, matched: Tensor, overlaps: Tensor) -> tuple[Tensor, Tensor]:
        """The target scores, and the weights of matched classes."""
        return matched * overlaps, overlaps


@MODELS.register_module()
class MatchabilityAwareLoss(OverlapVarifocalLoss):
    """DEIM's loss (arXiv:2412.04234, Section 3.3), which also trains boxes with small overlap.

    With the score s and the overlap u of a matched box, the loss of its class is the cross-entropy
    of s and u^gamma. For any other class it is alpha s^gamma times the cross-entropy of s and 0.

    Args:
        alpha, gamma: see the formulas.
        loss_weight: factor of the loss.
    """

    def __init__(
        self, alpha: NotNegative = 1.0, gamma: Positive = 1.5, loss_weight: NotNegative = 1.0
    ) -> None:
        super().__init__(alpha, gamma, loss_weight)

    def score_targets(self, matched: Tensor, overlaps: Tensor) -> tuple[Tensor, Tensor]:
        """See the base class."""
        return matched * overlaps**self.beta, torch.ones_like(overlaps)


def localization_loss(sides: Tensor, bins: Bins, overlaps: Tensor) -> Tensor:
    """Fine-grained localization (D-FINE, Equation 5), summed.

    Args:
        sides: logits of the matched boxes' sides (M, 4 * (bins + 1)).
        bins: the target bins.
        overlaps: overlaps of these boxes with their objects (M).
    """
    logs = sides.unflatten(-1, (4, -1)).flatten(0, 1).log_softmax(-1)
    left, right = (logs.gather(1, (bins.left + i)[:, None])[:, 0] for i in (0, 1))
    per_side = -(left * bins.left_share + right * bins.right_share)
    return (per_side * overlaps.repeat_interleave(4)).sum()


def distillation_loss(
    sides: Tensor,
    last_sides: Tensor,
    confidence: Tensor,
    queries: Tensor,
    overlaps: Tensor,
    numbers: tuple[int, int],
) -> Tensor:
    """Decoupled distillation of the last layer's distributions (D-FINE, Equation 6).

    The averages over matched and over other queries are weighted by the square roots of
    ``numbers``.

    Args:
        sides: logits of all sides (N, 4 * (bins + 1)).
        last_sides: the same logits of the last layer.
        confidence: the best score of each query in the last layer (N).
        queries: the matched queries (M), each once.
        overlaps: overlaps of their boxes with their objects (M).
        numbers: the numbers of matched and of other queries.
    """
    shape = (4, -1)
    with torch.no_grad():
        teacher = (last_sides.unflatten(-1, shape) / DISTILLATION_TEMPERATURE).softmax(-1)
        weights = confidence.index_copy(0, queries, overlaps.to(confidence))
    student = (sides.unflatten(-1, shape) / DISTILLATION_TEMPERATURE).log_softmax(-1)
    divergence = F.kl_div(student, teacher, reduction='none').sum(-1).sum(-1)  # (N,)
    per_query = weights * DISTILLATION_TEMPERATURE**2 * divergence
    matched = per_query[queries].sum()
    matched_weight, other_weight = (number**0.5 for number in numbers)
    matched_mean = matched / (4 * max(len(queries), 1))
    other_mean = (per_query.sum() - matched) / (4 * max(len(sides) - len(queries), 1))
    total = matched_mean * matched_weight + other_mean * other_weight
    return total / max(matched_weight + other_weight, 1.0)
