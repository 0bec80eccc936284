"""DINO: its losses, its teacher, and masked patches as in DINOv2."""

import numpy as np
import pytest
import torch
from mmengine.registry import MODELS
from rejection import rejects
from torch import Tensor
from unlabeled_runs import at_first_step

from vit_plugin.projects.self_supervised.dino import DINO
from vit_plugin.projects.self_supervised.dino_head import DINOHead, DINONeck
from vit_plugin.projects.self_supervised.dinov2 import koleo

BACKBONE = dict(
    type='vit_plugin.VisionTransformer',
    img_size=16,
    drop_path_rate=0.5,
    out_type='avg_featmap',
    arch=dict(embed_dims=16, num_layers=2, num_heads=2, feedforward_channels=32, patch_size=4),
)
NECK = dict(
    type='vit_plugin.DINONeck', in_channels=16, hid_channels=16, bottleneck=8, out_channels=12
)
HEAD = dict(type='vit_plugin.DINOHead', out_channels=12)
PREPROCESSOR = dict(type='SelfSupDataPreprocessor', _scope_='mmpretrain')


@pytest.fixture(autouse=True)
def progress():
    return at_first_step()


@pytest.fixture
def model() -> DINO:
    torch.manual_seed(0)
    return DINO(BACKBONE, NECK, HEAD, momentum=0.9, data_preprocessor=PREPROCESSOR).train()


def views(*sides: int) -> list[Tensor]:
    """Views of three images, one for each side in pixels."""
    rng = torch.Generator().manual_seed(1)
    return [torch.randn(3, 3, side, side, generator=rng) for side in sides]


def softmax(x: np.ndarray) -> np.ndarray:
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


def test_loss_equals_loops_over_views_and_images():
    """Algorithm 1 of arXiv:2104.14294."""
    head = DINOHead(out_channels=5, temperature=0.2, teacher_temperature=(0.1, 0.1))
    rng = np.random.default_rng(0)
    student, teacher, center = (rng.normal(size=size) for size in ((4, 3, 5), (2, 3, 5), (5,)))
    head.center.copy_(torch.from_numpy(center))
    terms = [
        -(softmax((teacher[g, i] - center) / 0.1) * np.log(softmax(student[v, i] / 0.2))).sum()
        for g in range(2)
        for v in range(4)
        if g != v
        for i in range(3)
    ]
    assert head.loss(torch.from_numpy(student), torch.from_numpy(teacher)).item() == pytest.approx(
        np.mean(terms)
    )
    torch.testing.assert_close(
        head.center.double().numpy(), 0.9 * center + 0.1 * teacher.mean((0, 1)), rtol=0, atol=1e-6
    )


def test_the_teachers_temperature_rises(progress):
    head = DINOHead(out_channels=5, teacher_temperature=(0.04, 0.08), warmup=0.5)
    temperatures = []
    for iteration in (0, 2, 5, 9):
        progress.update_info('iter', iteration)
        temperatures.append(head._teacher_temperature())
    assert temperatures == pytest.approx([0.04, 0.056, 0.08, 0.08])


def test_prototypes_and_features_are_unit_vectors():
    neck = DINONeck(in_channels=16, hid_channels=16, bottleneck=8, out_channels=12)
    features = (torch.randn(4, 16),)
    (cosines,) = neck(features)
    assert cosines.shape == (4, 12)
    assert cosines.abs().max() <= 1 + 1e-6
    neck.prototypes.data *= 7
    torch.testing.assert_close(neck(features)[0], cosines)


def test_the_projection_has_a_gelu_between_its_linear_layers():
    neck = DINONeck(in_channels=16, hid_channels=16, bottleneck=8, out_channels=12)
    names = [type(layer).__name__ for layer in neck.mlp]
    assert names == ['Linear', 'GELU', 'Linear', 'GELU', 'Linear']


def test_a_step_trains_the_student_only(model):
    losses = model.loss(views(16, 16, 8, 8, 8))
    losses['loss'].backward()
    assert all(
        parameter.grad is not None
        for parameter in (*model.backbone.parameters(), *model.neck.parameters())
    )
    assert all(parameter.grad is None for parameter in model.teacher.parameters())
    assert model.training
    assert not any(module.training for module in model.teacher.modules())


def test_the_teacher_is_the_average_of_the_student(model):
    """The first step copies the student; after that, the momentum rises to 1 on a cosine."""
    model.loss(views(16, 16))
    source, average = model.neck.prototypes, model.teacher.module[1].prototypes
    assert torch.equal(source, average)
    before = average.clone()
    source.data += 1
    model.loss(views(16, 16))
    # The second of ten steps; 0.1 is 1 - momentum.
    weight = 0.1 * (np.cos(np.pi * 1 / 10) + 1) / 2
    torch.testing.assert_close(average, (1 - weight) * before + weight * source.data)


def test_order_of_large_views_does_not_change_the_loss(model):
    """Views of one size form one batch, whose outputs are split into the views again."""
    model.eval()
    model.backbone.norm.weight.data.normal_()  # so that the features of the views differ more
    inputs, losses = views(16, 16, 8), []
    for order in (inputs, [inputs[1], inputs[0], inputs[2]]):
        model.head.center.zero_()
        losses.append(model.loss(order)['loss'].item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def masked_dino(**options) -> DINO:
    """A DINO that masks patches, as DINOv2 does, in float64."""
    torch.manual_seed(0)
    backbone = dict(BACKBONE, type='vit_plugin.IBOTViT', drop_path_rate=0.0)
    options = {'mask_ratio': (0.1, 0.5), 'koleo_weight': 0.1, **options}
    return DINO(backbone, NECK, HEAD, data_preprocessor=PREPROCESSOR, **options).train().double()


def test_masked_patches_are_compared_with_the_teacher():
    """The student learns the teacher's outputs for the patches that it does not see."""
    model, calls = masked_dino(), []
    inputs = [view.double() for view in views(16, 16, 8)]
    original = model.patch_head.patch_loss
    model.patch_head.patch_loss = lambda *args: calls.append(args) or original(*args)
    losses = model.loss(inputs)
    assert losses.keys() == {'loss_views', 'loss_patches', 'loss_koleo'}
    outputs, targets, masked = calls[0]
    assert masked.flatten(1).any(dim=1).sum() == 3  # half of the six large views
    teacher, images = model.teacher.module, torch.cat(inputs[:2])
    for image, grid in enumerate(masked):
        first = int(masked[:image].sum())
        for network, mask, all_outputs in (
            (teacher, None, targets),
            (model.student(), grid[None], outputs),
        ):
            tokens = network[0](images[image : image + 1], mask)[0][0][grid.flatten()]
            outputs_of_image = all_outputs[first : first + len(tokens)]
            torch.testing.assert_close(outputs_of_image, network[1]((tokens,))[-1])
    _, log = model.parse_losses(losses)
    assert log['loss'].item() == pytest.approx(sum(loss.item() for loss in losses.values()))
    sum(losses.values()).backward()
    trained = (*model.backbone.parameters(), *model.neck.parameters())
    assert all(parameter.grad is not None for parameter in trained)


def test_koleo_compares_images_within_each_large_view():
    model = DINO(BACKBONE, NECK, HEAD, koleo_weight=0.1, data_preprocessor=PREPROCESSOR).eval()
    inputs = views(16, 16, 16)
    losses = model.loss(inputs)
    expected = 0.1 * sum(koleo(model.backbone(view)[-1]) for view in inputs[:2])
    torch.testing.assert_close(losses['loss_koleo'], expected)
    assert losses.keys() == {'loss_views', 'loss_koleo'}


def test_without_masked_patches_the_loss_is_that_of_dino():
    model, plain = (
        masked_dino(mask_ratio=(0.0, 0.0)),
        masked_dino(mask_ratio=None, koleo_weight=0.0),
    )
    inputs = [view.double() for view in views(16, 16, 8)]
    losses = model.loss(inputs)
    assert losses['loss_patches'] == 0
    torch.testing.assert_close(plain.loss(inputs), dict(loss=losses['loss_views']))


def test_backbone_that_cannot_mask_raises():
    with rejects(r"mask_ratio masks patches; set type='vit_plugin.IBOT"):
        DINO(BACKBONE, NECK, HEAD, mask_ratio=(0.1, 0.5), data_preprocessor=PREPROCESSOR)


def test_other_prototypes_of_the_head_raise():
    with rejects('DINO: out_channels is 12 in neck and 5 in head; make them equal'):
        DINO(BACKBONE, NECK, dict(HEAD, out_channels=5), data_preprocessor=PREPROCESSOR)


def test_too_few_views_raise(model):
    for inputs in (views(16)[0], views(16)):
        with rejects('at least two views of each image are needed'):
            model.loss(inputs)


def test_dino_is_registered():
    assert MODELS.get('vit_plugin.DINO') is DINO
