"""The Gram anchor's loss (arXiv:2508.10104, Section 4.2)."""

from typing import Literal

import torch.nn.functional as F
from torch import Tensor

Negatives = Literal['kept', 'zero', 'zero_in_teacher']


def gram_loss(x: Tensor, target: Tensor, negatives: Negatives = 'kept') -> Tensor:
    """The mean squared difference of the cosines between the patches of each image.

    Args:
        x, target: patch features (B, N, C) of the student and the anchor. C may differ.
        negatives: treatment of cosines below 0. ``'kept'`` keeps them, as in DINOv3's training.
            ``'zero'`` makes them 0. ``'zero_in_teacher'`` makes them 0 in the target, and in the
            student where both are below 0. The last two are options of facebookresearch/dinov3.
    """
    x, target = (F.normalize(features, dim=-1) for features in (x, target))
    cosines, target_cosines = x @ x.mT, target @ target.mT  # (B, N, N)
    if negatives == 'zero':
        cosines, target_cosines = cosines.clamp(min=0), target_cosines.clamp(min=0)
    elif negatives == 'zero_in_teacher':
        target_cosines = target_cosines.clamp(min=0)
        cosines = cosines.masked_fill((cosines < 0) & (target_cosines == 0), 0)
    return F.mse_loss(cosines, target_cosines)
