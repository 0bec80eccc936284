"""The Gram loss equals a transcription of ``GramLoss`` in facebookresearch/dinov3.

``'zero_in_teacher'`` is what their option ``remove_only_teacher_neg`` intends: their code sets the
teacher's cosines to 0 before it asks whether both are below 0, and so never changes the student's.
"""

import numpy as np
import pytest
import torch

from vit_plugin.projects.dinov3.gram_loss import gram_loss


def transcribed(x: np.ndarray, target: np.ndarray, negatives: str) -> float:
    """The authors' loss, computed image by image and pair by pair."""
    terms = []
    for pair in zip(x, target, strict=True):
        student, teacher = (
            features / np.sqrt((features**2).sum(axis=1, keepdims=True)) for features in pair
        )
        for i in range(len(student)):
            for j in range(len(student)):
                a, b = float(student[i] @ student[j]), float(teacher[i] @ teacher[j])
                if negatives == 'zero':  # the authors' option remove_neg
                    a, b = max(a, 0.0), max(b, 0.0)
                elif negatives == 'zero_in_teacher' and b < 0:  # intended
                    a, b = (a, 0.0) if a >= 0 else (0.0, 0.0)
                terms.append((a - b) ** 2)
    return float(np.mean(terms))


@pytest.mark.parametrize('negatives', ['kept', 'zero', 'zero_in_teacher'])
def test_gram_loss_equals_the_authors(negatives):
    rng = np.random.default_rng(0)
    x, target = rng.normal(size=(3, 7, 4)), rng.normal(size=(3, 7, 6))
    loss = gram_loss(torch.from_numpy(x), torch.from_numpy(target), negatives)
    assert loss.item() == pytest.approx(transcribed(x, target, negatives), abs=1e-10, rel=0)


def test_rotation_and_scale_of_features_cost_nothing():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 5, 4, dtype=torch.float64, generator=generator)
    rotated = x @ torch.linalg.qr(torch.randn(4, 4, dtype=torch.float64, generator=generator))[0]
    assert gram_loss(rotated, 3 * x) < 1e-20
