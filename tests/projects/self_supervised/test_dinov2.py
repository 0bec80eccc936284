"""DINOv2's losses equal loops over the papers' equations, and its masks are blocks."""

import math

import numpy as np
import pytest
import torch
from mmengine.dist import get_rank
from mmengine.logging import MessageHub
from ranks import on_ranks
from rejection import rejects
from torch import Tensor

from vit_plugin.projects.self_supervised.dino_head import DINOHead
from vit_plugin.projects.self_supervised.dinov2 import block_masks, koleo, sinkhorn_knopp

EXACT = dict(rtol=0, atol=1e-10)


@pytest.fixture(autouse=True)
def run_starts():
    """The teacher's temperature depends on the progress of the run."""
    MessageHub.get_current_instance().update_info('iter', 0)


def randn(*size: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*size, dtype=torch.float64, generator=generator)


def sinkhorn_with_loops(scores: np.ndarray) -> np.ndarray:
    """The algorithm of Sinkhorn and Knopp: three times, normalize prototypes, then samples."""
    samples, prototypes = scores.shape
    mass = np.exp(scores)
    for _ in range(3):
        for k in range(prototypes):
            mass[:, k] /= prototypes * sum(mass[i, k] for i in range(samples))
        for i in range(samples):
            mass[i] /= samples * sum(mass[i, k] for k in range(prototypes))
    return samples * mass


def softmax(x: np.ndarray) -> np.ndarray:
    return np.exp(x) / np.exp(x).sum(-1, keepdims=True)


def test_sinkhorn_knopp_equals_loops_and_balances():
    scores = randn(2, 5, 7)
    expected = sinkhorn_with_loops(scores.flatten(0, 1).numpy()).reshape(2, 5, 7)
    torch.testing.assert_close(sinkhorn_knopp(scores).numpy(), expected, **EXACT)
    balanced = sinkhorn_knopp(scores, iterations=200).sum(dim=(0, 1))
    torch.testing.assert_close(balanced, torch.full_like(balanced, 10 / 7))


def test_koleo_is_the_mean_log_distance_to_the_nearest():
    features = randn(40, 6)
    units = [row / math.sqrt(sum(row**2)) for row in features.numpy()]
    terms = []
    for i, unit in enumerate(units):
        others = [other for j, other in enumerate(units) if j != i]
        nearest = min(others, key=lambda other, unit=unit: sum((unit - other) ** 2))
        # The two small numbers are those of the authors' code.
        terms.append(math.log(math.sqrt(sum((unit - nearest + 1e-8) ** 2)) + 1e-8))
    torch.testing.assert_close(koleo(features).item(), -np.mean(terms), **EXACT)


def test_koleo_gradient_spreads_features():
    features = (randn(8, 3) + 4).requires_grad_()
    before = koleo(features)
    before.backward()
    assert koleo(features - 0.1 * features.grad) < before


@pytest.mark.parametrize('centering', ['mean', 'sinkhorn_knopp'])
def test_patch_loss_equals_loops(centering):
    """iBOT's loss: an image without masked patches counts with a loss of zero."""
    head = DINOHead(5, temperature=0.2, teacher_temperature=(0.1, 0.1), centering=centering)
    head = head.double()
    center = head.center.copy_(randn(5, seed=1)).numpy().copy()
    masked = torch.tensor([[[1, 0], [1, 1]], [[0, 0], [0, 0]], [[0, 1], [0, 0]]]).bool()
    student, teacher = randn(4, 5, seed=2), randn(4, 5, seed=3) / 5
    loss = head.patch_loss(student, teacher, masked)
    if centering == 'mean':
        targets = softmax((teacher.numpy() - center) / 0.1)
        moved = 0.9 * center + 0.1 * teacher.numpy().mean(axis=0)
        torch.testing.assert_close(head.center.numpy(), moved, **EXACT)
    else:
        targets = sinkhorn_with_loops(teacher.numpy() / 0.1)
    total, patch = 0.0, 0
    for image in masked:
        count = int(image.sum())
        for _ in range(count):
            logs = np.log(softmax(student[patch].numpy() / 0.2))
            total -= sum(targets[patch] * logs) / count / len(masked)
            patch += 1
    torch.testing.assert_close(loss.item(), total, **EXACT)


def test_image_loss_with_sinkhorn_knopp_equals_loops():
    head = DINOHead(5, teacher_temperature=(0.1, 0.1), centering='sinkhorn_knopp').double()
    student, teacher = randn(3, 4, 5, seed=2), randn(2, 4, 5, seed=3) / 5
    targets = sinkhorn_with_loops(teacher.flatten(0, 1).numpy() / 0.1).reshape(2, 4, 5)
    logs = np.log(softmax(student.numpy() / 0.1))
    terms = [-(targets[g] * logs[v]).sum(-1) for g in range(2) for v in range(3) if g != v]
    torch.testing.assert_close(head.loss(student, teacher).item(), np.mean(terms), **EXACT)


def test_temperature_with_which_exponentials_overflow_raises():
    DINOHead(5, teacher_temperature=(0.04, 0.01))
    with rejects('is too low for'):
        DINOHead(5, teacher_temperature=(0.04, 0.01), centering='sinkhorn_knopp')


@pytest.mark.parametrize('centering', ['mean', 'sinkhorn_knopp'])
def test_no_masked_patches_give_zero_loss(centering):
    head = DINOHead(5, centering=centering)
    nothing = torch.zeros(0, 5, requires_grad=True)
    loss = head.patch_loss(nothing, nothing.detach(), torch.zeros(3, 2, 2, dtype=torch.bool))
    loss.backward()
    assert loss.item() == 0
    assert torch.isfinite(head.center).all()


def test_half_of_the_masks_hide_blocks_of_the_given_fractions():
    torch.manual_seed(0)
    masks = block_masks(400, (14, 10), (0.1, 0.5))
    fractions = masks.double().mean(dim=(1, 2))
    assert masks.shape == (400, 14, 10)
    assert (fractions > 0).sum() == 200
    expected = torch.linspace(0.1, 0.5, 200).double()
    assert (expected - fractions[fractions > 0].sort()[0]).abs().max() < 0.05
    assert fractions.max() <= 0.5
    # If patches were masked independently, and at most half of them, there would be no more pairs
    # of masked neighbors than masked patches, up to chance. Blocks have more.
    pairs = (masks[:, 1:] & masks[:, :-1]).sum() + (masks[:, :, 1:] & masks[:, :, :-1]).sum()
    assert pairs > 1.4 * masks.sum()
    assert not torch.equal(masks, block_masks(400, (14, 10), (0.1, 0.5)))
    torch.manual_seed(0)
    assert torch.equal(masks, block_masks(400, (14, 10), (0.1, 0.5)))


def test_small_grids_and_zero_fractions_give_valid_masks():
    for grid in ((1, 1), (2, 3), (4, 4)):
        masks = block_masks(64, grid, (0.1, 0.5))
        assert masks.double().mean(dim=(1, 2)).max() <= 0.5
    assert masks.any()
    assert not block_masks(8, (4, 4), (0.0, 0.0)).any()


def gradients(centering: str, images: Tensor, patches: Tensor, masked: Tensor) -> list[Tensor]:
    """Gradients of the class token's and the patches' loss, then the updated centers."""
    heads = [DINOHead(5, centering=centering).double() for _ in range(2)]
    students = [(images / 3).flip(0).requires_grad_(), (patches / 3).flip(1).requires_grad_()]
    loss = heads[0].loss(students[0], images) + heads[1].patch_loss(students[1], patches, masked)
    return [*torch.autograd.grad(loss, students), *(head.center for head in heads)]


def assert_mean_gradients(centering: str, data: list[Tensor], expected: list[Tensor]) -> None:
    """On each of two ranks, use half of the six images and their masked patches."""
    images, patches, masked = data
    half = slice(3 * get_rank(), 3 * get_rank() + 3)
    first = masked[:3].sum()
    own_patches = slice(0, first) if get_rank() == 0 else slice(first, None)
    actual = gradients(centering, images[:, half], patches[own_patches], masked[half])
    # DDP takes the mean over the ranks.
    torch.testing.assert_close(actual[0] / 2, expected[0][:, half])
    torch.testing.assert_close(actual[1] / 2, expected[1][own_patches])
    torch.testing.assert_close(actual[2:], expected[2:])


@pytest.mark.parametrize('centering', ['mean', 'sinkhorn_knopp'])
def test_two_ranks_have_the_gradient_of_one(centering, tmp_path):
    """The ranks have different numbers of masked patches."""
    masked = torch.zeros(6, 2, 2, dtype=torch.bool)
    masked[0], masked[2, 0], masked[4, 0, 0] = True, True, True
    data = [randn(2, 6, 5) / 5, randn(7, 5, seed=1) / 5, masked]
    on_ranks(2, tmp_path, assert_mean_gradients, centering, data, gradients(centering, *data))
