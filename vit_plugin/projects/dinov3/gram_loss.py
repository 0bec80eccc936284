"""The Gram anchor's loss (arXiv:2508.10104, Section 4.2)."""

from typing import Literal

import torch.nn.functional as F
from torch import Tensor

Negatives = Literal['kept', 'zero', 'zero_in_teacher']


def gram_loss(student: Tensor, teacher: Tensor, negatives: Negatives = 'kept') -> Tensor:
    """The mean squared difference of the cosines between the patches of each image.

    Args:
        student, teacher: patch features (B, N, C). C may differ. In :class:`DINOv3` the teacher
            is the Gram anchor.
        negatives: treatment of cosines below 0. ``'kept'`` keeps them, as in DINOv3's training.
            ``'zero'`` makes them 0, as the option ``remove_neg`` of facebookresearch/dinov3.
            ``'zero_in_teacher'`` makes them 0 in the teacher, and in the student where both are
            below 0. This is the intent of ``remove_only_teacher_neg``: the authors' code first sets
            the teacher's to 0, so that its test for both is never true, and the student's stay.
    """
    student, teacher = (F.normalize(features, dim=-1) for features in (student, teacher))
    cosines, teacher_cosines = student @ student.mT, teacher @ teacher.mT  # (B, N, N)
    if negatives == 'zero':
        cosines, teacher_cosines = cosines.clamp(min=0), teacher_cosines.clamp(min=0)
    elif negatives == 'zero_in_teacher':
        both_negative = (cosines < 0) & (teacher_cosines < 0)
        teacher_cosines = teacher_cosines.clamp(min=0)
        cosines = cosines.masked_fill(both_negative, 0)
    return F.mse_loss(cosines, teacher_cosines)
