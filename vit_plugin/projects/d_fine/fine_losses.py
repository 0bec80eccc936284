"""The losses of D-FINE and DEIM: IoU-aware classification, and distributions of the edges."""

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_plugin.arguments.fields import NotNegative, Positive
from vit_plugin.errors import needed_by
from vit_plugin.importable import make_importable
from vit_plugin.registry import MODELS

from .fine_boxes import Bins

with needed_by('OverlapVarifocalLoss or MatchabilityAwareLoss'):
    make_importable()
    from mmdet.models.losses import QualityFocalLoss

# Temperature for distilling the last layer's distributions into the others.
DISTILLATION_TEMPERATURE = 5.0


@MODELS.register_module()
class OverlapVarifocalLoss(QualityFocalLoss):
    """RT-DETR's classification loss (arXiv:2304.08069), a varifocal loss (arXiv:2008.13367).

    With the score s and the IoU u of a matched box, the loss of its class is u times the
    cross-entropy of s and u. For any other class it is alpha s^gamma times the cross-entropy of s
    and 0.

    MMDetection's own ``VarifocalLoss`` takes one array of targets. DETR heads pass labels and IoUs
    only to a ``QualityFocalLoss``, so that is the base class.

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
        """Logits (N, C) -> the sum of the losses, divided by ``avg_factor``.

        ``target`` are labels (N,), of which C stands for no object, and IoUs (N,).
        """
        labels, ious = target
        matched = labels[:, None] == torch.arange(pred.shape[1], device=pred.device)
        targets, matched_weights = self.score_targets(matched, ious[:, None])
        other_weights = self.alpha * pred.detach().sigmoid() ** self.beta
        weights = torch.where(matched, matched_weights, other_weights)
        if weight is not None:
            weights = weights * weight[:, None]
        loss = F.binary_cross_entropy_with_logits(pred, targets, weights, reduction='sum')
        return self.loss_weight * loss / avg_factor

    def score_targets(self, matched: Tensor, ious: Tensor) -> tuple[Tensor, Tensor]:
        """The target scores (N, C), and the weights of the matched classes (N, 1).

        Args:
            matched: which class is that of the matched object (N, C).
            ious: IoUs of the boxes with their objects (N, 1).
        """
        return matched * ious, ious


@MODELS.register_module()
class MatchabilityAwareLoss(OverlapVarifocalLoss):
    """DEIM's classification loss (arXiv:2412.04234, Section 3.3).

    Unlike the varifocal loss, it keeps the full weight of boxes with a small IoU. With the score s
    and the IoU u of a matched box, the loss of its class is the cross-entropy of s and u^gamma. For
    any other class it is alpha s^gamma times the cross-entropy of s and 0.

    Args:
        alpha, gamma: see the formulas.
        loss_weight: factor of the loss.
    """

    def __init__(
        self, alpha: NotNegative = 1.0, gamma: Positive = 1.5, loss_weight: NotNegative = 1.0
    ) -> None:
        super().__init__(alpha, gamma, loss_weight)

    def score_targets(self, matched: Tensor, ious: Tensor) -> tuple[Tensor, Tensor]:
        """See the base class."""
        return matched * ious**self.beta, torch.ones_like(ious)


def localization_loss(edge_logits: Tensor, bins: Bins, ious: Tensor) -> Tensor:
    """Fine-grained localization (D-FINE, Equation 5), summed.

    Args:
        edge_logits: logits of the distributions of the matched boxes (M, 4 * (bins + 1)).
        bins: the target bins.
        ious: IoUs of these boxes with their objects (M), which weight the loss.
    """
    logs = edge_logits.unflatten(-1, (4, -1)).flatten(0, 1).log_softmax(-1)
    lower, upper = (logs.gather(1, (bins.lower + i)[:, None])[:, 0] for i in (0, 1))
    per_edge = -(lower * bins.lower_weight + upper * bins.upper_weight)
    return (per_edge * ious.repeat_interleave(4)).sum()


def distillation_loss(
    edge_logits: Tensor,
    last_edge_logits: Tensor,
    confidence: Tensor,
    queries: Tensor,
    ious: Tensor,
    group_sizes: tuple[int, int],
) -> Tensor:
    """Decoupled distillation of the last layer's distributions (D-FINE, Equation 6).

    The means over the matched and over the unmatched queries are weighted by the square roots of
    ``group_sizes``.

    Args:
        edge_logits: logits of the distributions of all queries (N, 4 * (bins + 1)).
        last_edge_logits: the same logits of the last layer, the teacher.
        confidence: the best score of each query in the last layer (N), the weight of unmatched
            queries.
        queries: indices of the matched queries (M), each once.
        ious: IoUs of their boxes with their objects (M), the weights of matched queries.
        group_sizes: numbers of matched and of unmatched queries without the denoising ones, also if
            ``queries`` are denoising ones.
    """
    shape = (4, -1)
    with torch.no_grad():
        teacher = (last_edge_logits.unflatten(-1, shape) / DISTILLATION_TEMPERATURE).softmax(-1)
        weights = confidence.index_copy(0, queries, ious.to(confidence))
    student = (edge_logits.unflatten(-1, shape) / DISTILLATION_TEMPERATURE).log_softmax(-1)
    divergence = F.kl_div(student, teacher, reduction='none').sum(-1).sum(-1)  # (N,)
    per_query = weights * DISTILLATION_TEMPERATURE**2 * divergence
    matched = per_query[queries].sum()
    matched_weight, unmatched_weight = (size**0.5 for size in group_sizes)
    matched_mean = matched / (4 * max(len(queries), 1))
    unmatched_mean = (per_query.sum() - matched) / (4 * max(len(edge_logits) - len(queries), 1))
    total = matched_mean * matched_weight + unmatched_mean * unmatched_weight
    return total / max(matched_weight + unmatched_weight, 1.0)
