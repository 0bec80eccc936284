"""The Gram anchor's loss beside a transcription of facebookresearch/dinov3's ``GramLoss``."""

import numpy as np
import pytest
import torch

from vit_plugin.projects.dinov3.gram_loss import gram_loss


def of_their_code(x: np.ndarray, target: np.ndarray, negatives: str) -> float:
    """Image by image and pair by pair."""
    terms = []
    for image, other in zip(x, target, strict=True):
        mine, theirs = (
            one / np.sqrt((one**2).sum(axis=1, keepdims=True)) for one in (image, other)
        )
        for i in range(len(mine)):
            for j in range(len(mine)):
                a, b = float(mine[i] @ mine[j]), float(theirs[i] @ theirs[j])
                if negatives == 'zero':  # remove_neg
                    a, b = max(a, 0.0), max(b, 0.0)
                elif negatives == 'zero_in_teacher' and b < 0:  # remove_only_teacher_neg
                    a, b = (a, 0.0) if a >= 0 else (0.0, 0.0)
                terms.append((a - b) ** 2)
    return float(np.mean(terms))


@pytest.mark.parametrize('negatives', ['kept', 'zero', 'zero_in_teacher'])
def test_it_is_the_authors(negatives):
    random = np.random.default_rng(0)
    x, target = random.normal(size=(3, 7, 4)), random.normal(size=(3, 7, 6))
    found = gram_loss(torch.from_numpy(x), torch.from_numpy(target), negatives)
    assert found.item() == pytest.approx(of_their_code(x, target, negatives), abs=1e-10, rel=0)


def test_a_rotation_of_all_features_costs_nothing():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 5, 4, dtype=torch.float64, generator=generator)
    turned = x @ torch.linalg.qr(torch.randn(4, 4, dtype=torch.float64, generator=generator))[0]
    assert gram_loss(turned, 3 * x) < 1e-20
