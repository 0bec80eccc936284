"""Replacements of MMPretrain's classification losses, equal to them bit for bit."""

from typing import Any, Literal

import torch.nn.functional as F
from torch import Tensor, nn

from vit_plugin.arguments.fields import Fraction, NotNegative, Numbers
from vit_plugin.errors import ConfigError


class CrossEntropyLoss(nn.Module):
    """The cross entropy of logits (N, num_classes).

    Args:
        use_sigmoid: whether each class is an independent binary decision, with targets from 0 to 1
            (N, num_classes).
        use_soft: whether targets are probabilities (N, num_classes). Otherwise they are class
            indices (N).
        loss_weight: factor of the loss.
        class_weight: factors of the classes.
    """

    def __init__(
        self,
        use_sigmoid: bool = False,
        use_soft: bool = False,
        loss_weight: NotNegative = 1.0,
        class_weight: Numbers | None = None,
    ) -> None:
        super().__init__()
        self.use_sigmoid, self.use_soft, self.loss_weight = use_sigmoid, use_soft, loss_weight
        self.class_weight = class_weight

    def forward(self, cls_score: Tensor, label: Tensor, avg_factor: float) -> Tensor:
        """The sum over the images, divided by ``avg_factor``."""
        weight: Any = self.class_weight and cls_score.new_tensor(self.class_weight)
        if self.use_sigmoid:
            loss = F.binary_cross_entropy_with_logits(
                cls_score, label.float(), weight, reduction='none'
            )
        elif self.use_soft:
            loss = -label * F.log_softmax(cls_score, dim=-1)
            loss = (loss if weight is None else loss * weight).sum(dim=-1)
        else:
            loss = F.cross_entropy(cls_score, label, weight, reduction='none')
        return self.loss_weight * (loss.sum() / avg_factor)


class LabelSmoothLoss(nn.Module):
    """The cross entropy with smooth targets (arXiv:1512.00567, Section 7).

    Args:
        label_smooth_val: the part of the probability that is spread over all classes.
        num_classes: number of classes, which is only checked. Default: that of the logits.
        mode: accepted only as ``'original'``, the paper's.
        use_sigmoid, **kwargs: see :class:`CrossEntropyLoss`.

    Raises:
        ConfigError: in the forward, for logits of another number of classes.
    """

    def __init__(
        self,
        label_smooth_val: Fraction,
        num_classes: int | None = None,
        mode: Literal['original'] = 'original',
        use_sigmoid: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        self.smoothing, self.num_classes = label_smooth_val, num_classes
        self.ce = CrossEntropyLoss(use_sigmoid=use_sigmoid, use_soft=not use_sigmoid, **kwargs)

    def forward(self, cls_score: Tensor, label: Tensor, avg_factor: float) -> Tensor:
        """The loss of labels (N), or of scores (N, num_classes)."""
        num_classes = cls_score.shape[1]
        if self.num_classes not in (None, num_classes):
            raise ConfigError(
                f'LabelSmoothLoss: num_classes={self.num_classes}, but the head has {num_classes}; '
                'leave it out.'
            )
        label = F.one_hot(label, num_classes) if label.ndim == 1 else label
        smooth = label.float() * (1 - self.smoothing) + self.smoothing / num_classes
        return self.ce(cls_score, smooth, avg_factor)
