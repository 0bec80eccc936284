"""Depth losses count known pixels only, and ignore scale, shift or outliers as documented."""

import pytest
import torch
from rejection import rejects

from vit_plugin.models import ScaleShiftInvariantLoss, SiLogLoss
from vit_plugin.projects.depth.depth_losses import fit_scale_and_shift


def maps(height=7, width=9):
    """Predicted and true depths of two images; three rows of the first one are unknown."""
    generator = torch.Generator().manual_seed(0)
    predicted, true = torch.rand(2, 2, 1, height, width, generator=generator) + 0.5
    true[0, 0, :3] = 0
    return predicted, true


def test_silog_is_the_formula_on_known_pixels():
    predicted, true = maps()
    losses = []
    for image, target in zip(predicted[:, 0], true[:, 0], strict=True):
        d = (image.log() - target.log())[target > 0]
        losses.append((d.square().mean() - 0.85 * d.mean().square()).sqrt())
    torch.testing.assert_close(SiLogLoss()(predicted, true), torch.stack(losses).mean())


def test_silog_with_full_variance_focus_ignores_scale():
    predicted, true = maps()
    loss = SiLogLoss(variance_focus=1.0)
    torch.testing.assert_close(loss(3 * predicted, true), loss(predicted, true))


@pytest.mark.parametrize('loss', [SiLogLoss(), ScaleShiftInvariantLoss()])
def test_images_without_known_pixels_have_no_gradient(loss):
    predicted, true = maps()
    true[0] = 0
    predicted.requires_grad_()
    loss(predicted, true).backward()
    assert predicted.grad.isfinite().all()
    assert not predicted.grad[0].any()
    assert predicted.grad[1].any()


def test_scale_and_shift_of_a_disparity_are_ignored():
    predicted, true = maps()
    loss = ScaleShiftInvariantLoss()
    torch.testing.assert_close(loss(5 * predicted - 2, true), loss(predicted, true))
    assert loss(2 * true - 0.3, true) < 1e-5 < loss(predicted, true)


def test_the_farthest_pixels_are_trimmed():
    _, true = maps()
    true = true.clamp(min=0.5)
    outlier = true.clone()
    outlier[:, :, 0, 0] = 1.2 * true.max()
    trimmed, untrimmed = (
        ScaleShiftInvariantLoss(trim=trim, gradient_weight=0.0)(outlier, true)
        for trim in (0.2, 0.0)
    )
    assert trimmed < untrimmed


def test_gradient_term_uses_pairs_of_known_neighbors():
    true = torch.tensor([[1.0, 2.0, 0.0, 4.0]])[None, None]
    predicted = torch.tensor([[1.0, 3.0, 9.0, 2.0]])[None, None]
    with_term, without = (
        ScaleShiftInvariantLoss(gradient_weight=factor, scales=1)(predicted, true)
        for factor in (1.0, 0.0)
    )
    # Over the known pixels, the prediction has median 2 and mean distance 2 / 3 from it, and the
    # truth 2 and 1.
    first, second = ((1 - 2) / (2 / 3) - (1 - 2), (3 - 2) / (2 / 3) - (2 - 2))
    torch.testing.assert_close(with_term - without, torch.tensor(abs(first - second) / 3))


def test_scale_and_shift_are_recovered_by_the_fit():
    predicted = torch.rand(50)
    scale, shift = fit_scale_and_shift(predicted, 2 * predicted + 0.5)
    torch.testing.assert_close(torch.stack((scale, shift)), torch.tensor([2.0, 0.5]))


@pytest.mark.parametrize('loss', [ScaleShiftInvariantLoss, SiLogLoss])
def test_names_without_loss_raise(loss):
    with rejects("loss_name='depth' must match pattern"):
        loss(loss_name='depth')
