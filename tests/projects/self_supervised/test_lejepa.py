import numpy as np
import pytest
import torch
from mmengine.dist import get_rank
from mmengine.logging import MessageHub
from model_states import assert_all_learn
from ranks import on_ranks
from rejection import rejects

from vit_plugin.projects.self_supervised.lejepa import LeJEPA, LeJEPAHead

BACKBONE = dict(
    type='vit_plugin.VisionTransformer',
    img_size=16,
    out_type='avg_featmap',
    arch=dict(embed_dims=16, num_layers=2, num_heads=2, feedforward_channels=32, patch_size=4),
)
NECK = dict(
    type='mmpretrain.NonLinearNeck',
    in_channels=16,
    hid_channels=16,
    out_channels=4,
    with_avg_pool=False,
    norm_cfg=dict(type='BN1d'),
)
PREPROCESSOR = dict(type='mmpretrain.SelfSupDataPreprocessor')


@pytest.fixture(autouse=True)
def iteration():
    MessageHub.get_current_instance().update_info('iter', 3)


def statistic(x: np.ndarray, reach: float) -> float:
    """Epps and Pulley's for a standard Gaussian: N times an integral, by the trapezoidal rule."""
    points = np.linspace(-reach, reach, 33)
    found = np.array([np.exp(1j * t * x).mean() for t in points])
    gaussian = np.exp(-(points**2) / 2)
    heights = np.abs(found - gaussian) ** 2 * gaussian
    return len(x) * ((heights[1:] + heights[:-1]) / 2 * np.diff(points)).sum()


def test_the_loss_is_the_papers():
    """Algorithms 1 and 2 of arXiv:2511.08544, in loops over views and slices."""
    head = LeJEPAHead(weight=0.1, num_slices=5, reach=2.5)
    embeddings = torch.randn(3, 7, 4, dtype=torch.float64)
    losses = head.loss(embeddings, num_large=2)
    slices = torch.randn(4, 5, generator=torch.Generator().manual_seed(3))
    slices = (slices / slices.norm(dim=0)).numpy()
    views = embeddings.numpy()
    sigreg = np.mean([[statistic(view @ a, 2.5) for a in slices.T] for view in views])
    prediction = np.mean((views - views[:2].mean(axis=0)) ** 2)
    assert losses['loss_sigreg'].item() == pytest.approx(0.1 * sigreg, rel=1e-6)
    assert losses['loss_prediction'].item() == pytest.approx(0.9 * prediction, rel=1e-12)


def test_a_gaussian_is_nearest():
    head, x = LeJEPAHead(), torch.randn(1, 4096, 8)
    others = (x * 2, x + 1, x.sign(), torch.zeros_like(x), x[..., :1].expand(x.shape))
    assert all(3 * head.sigreg(x) < head.sigreg(other) for other in others)


def test_each_step_has_slices_of_its_own():
    head, x = LeJEPAHead(num_slices=4), torch.randn(2, 16, 8)
    first, again = head.sigreg(x), head.sigreg(x)
    assert torch.equal(first, again)
    MessageHub.get_current_instance().update_info('iter', 4)
    assert not torch.equal(first, head.sigreg(x))


def gradient(views: torch.Tensor) -> torch.Tensor:
    views = views.clone().requires_grad_()
    LeJEPAHead(num_slices=6).sigreg(views).backward()
    return views.grad


def its_part(whole: torch.Tensor, expected: torch.Tensor) -> None:
    part = slice(4 * get_rank(), 4 * get_rank() + 4)
    # DDP takes the mean over the processes.
    torch.testing.assert_close(gradient(whole[:, part]) / 2, expected[:, part])


def test_two_processes_compare_their_images_together(tmp_path):
    whole = torch.randn(2, 8, 5, dtype=torch.float64)
    on_ranks(2, tmp_path, its_part, whole, gradient(whole))


def test_a_step_with_views_of_two_sizes():
    model = LeJEPA(BACKBONE, NECK, dict(type='vit_plugin.LeJEPAHead'), 2, PREPROCESSOR).train()
    views = [torch.randn(4, 3, side, side) for side in (16, 16, 8)]
    losses = model.loss(views)
    sum(losses.values()).backward()
    assert_all_learn(model)
    with rejects('LeJEPA: num_large=2 large views'):
        model.loss(views[:1])
