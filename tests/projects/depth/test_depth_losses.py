"""Losses of depth count known pixels alone, and what they say they do not count, they do not."""

import pytest
import torch

from vit_plugin.models import ScaleShiftInvariantLoss, SiLogLoss
from vit_plugin.projects.depth.depth_losses import fitted


def maps(height=7, width=9):
    generator = torch.Generator().manual_seed(0)
    found, true = torch.rand(2, 2, 1, height, width, generator=generator) + 0.5
    true[0, 0, :3] = 0
    return found, true


def test_silog_is_the_formula_on_known_pixels():
    found, true = maps()
    each = []
    for one, other in zip(found[:, 0], true[:, 0], strict=True):
        d = (one.log() - other.log())[other > 0]
        each.append((d.square().mean() - 0.85 * d.mean().square()).sqrt())
    torch.testing.assert_close(SiLogLoss()(found, true), torch.stack(each).mean())


def test_the_scale_is_left_out_if_asked():
    found, true = maps()
    loss = SiLogLoss(variance_focus=1.0)
    torch.testing.assert_close(loss(3 * found, true), loss(found, true))


@pytest.mark.parametrize('loss', [SiLogLoss(), ScaleShiftInvariantLoss()])
def test_images_without_a_known_pixel_have_no_gradient(loss):
    found, true = maps()
    true[0] = 0
    found.requires_grad_()
    loss(found, true).backward()
    assert found.grad.isfinite().all()
    assert not found.grad[0].any()
    assert found.grad[1].any()


def test_scale_and_shift_of_a_disparity_do_not_count():
    found, true = maps()
    loss = ScaleShiftInvariantLoss()
    torch.testing.assert_close(loss(5 * found - 2, true), loss(found, true))
    assert loss(2 * true - 0.3, true) < 1e-5 < loss(found, true)


def test_the_farthest_pixels_are_trimmed():
    _, true = maps()
    true = true.clamp(min=0.5)
    outlier = true.clone()
    outlier[:, :, 0, 0] = 1.2 * true.max()
    kept, all_of_them = (
        ScaleShiftInvariantLoss(trim=part, gradient_weight=0.0)(outlier, true)
        for part in (0.2, 0.0)
    )
    assert kept < all_of_them


def test_gradients_are_those_of_neighbors_that_are_both_known():
    true = torch.tensor([[1.0, 2.0, 0.0, 4.0]])[None, None]
    found = torch.tensor([[1.0, 3.0, 9.0, 2.0]])[None, None]
    with_term, without = (
        ScaleShiftInvariantLoss(gradient_weight=factor, scales=1)(found, true)
        for factor in (1.0, 0.0)
    )
    # Median 2 and mean distance 2 / 3 of the prediction; 2 and 1 of the truth.
    first, second = ((1 - 2) / (2 / 3) - (1 - 2), (3 - 2) / (2 / 3) - (2 - 2))
    torch.testing.assert_close(with_term - without, torch.tensor(abs(first - second) / 3))


def test_least_squares():
    found = torch.rand(50)
    scale, shift = fitted(found, 2 * found + 0.5)
    torch.testing.assert_close(torch.stack((scale, shift)), torch.tensor([2.0, 0.5]))
