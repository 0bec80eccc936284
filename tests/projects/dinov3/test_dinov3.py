"""DINOv3's losses, the copies of its backbone, and which parameters it trains."""

import sys
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from mmengine.dist import get_rank
from mmengine.registry import MODELS
from ranks import on_ranks
from rejection import rejects
from tiny_models import CENTRED
from torch import Tensor
from unlabeled_runs import at_first_step
from wrong_values import RIGHT

from vit_plugin.projects.dinov3.dinov3 import DINOv3
from vit_plugin.projects.dinov3.gram_loss import gram_loss

ARCH = dict(embed_dims=16, num_layers=2, num_heads=2, feedforward_channels=32, patch_size=4)
BACKBONE = dict(
    type='vit_plugin.VisionTransformer',
    img_size=16,
    arch=ARCH,
    pos_embed=CENTRED,
    encoder=dict(reg_token=2),
)
NECK = dict(
    type='vit_plugin.DINONeck', in_channels=16, hid_channels=16, bottleneck=8, out_channels=12
)
HEAD = dict(type='vit_plugin.DINOHead', out_channels=12, centering='sinkhorn_knopp')
WINDOWED = dict(
    BACKBONE,
    type='vit_plugin.WindowedViT',
    pos_embed='learned',
    encoder=dict(window=dict(number=2, global_blocks=[1])),
)


@pytest.fixture(autouse=True)
def progress():
    """MMEngine's message hub, where the teacher reads a run's progress, at the first step."""
    return at_first_step()


def build(backbone: dict[str, Any] = BACKBONE, **options: Any) -> DINOv3:
    torch.manual_seed(0)
    model = DINOv3(
        backbone=backbone,
        neck=NECK,
        head=HEAD,
        data_preprocessor=dict(type='SelfSupDataPreprocessor', _scope_='mmpretrain'),
        **options,
    )
    return model.train()


def views(*sides: int, number: int = 4) -> list[Tensor]:
    """Random images (number, 3, side, side), one batch for each side."""
    generator = torch.Generator().manual_seed(1)
    shapes = [(number, 3, side, side) for side in sides]
    return [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]


# WindowedViT is in a project that may have been removed; `RIGHT` has the registered classes.
@pytest.mark.parametrize(
    'backbone',
    [
        config
        for config in (BACKBONE, WINDOWED)
        if config['type'].removeprefix('vit_plugin.') in RIGHT
    ],
)
def test_encode_returns_patches_and_vector_of_the_backbone(backbone):
    model = build(backbone).double()
    image = views(24)[0]
    patches, vector = model.encode(model.backbone, image)
    tokens, grid = model.backbone.features(image)
    assert patches.shape == (4, 36, 16)
    prefix = tokens[-1][:, :-36]
    if backbone is BACKBONE:
        torch.testing.assert_close(vector, prefix[:, 0])
    else:
        torch.testing.assert_close(vector, prefix.mean(dim=1))
        assert prefix.shape[1] == 4  # the class tokens of 2 x 2 windows
        output = model.backbone.output(tokens[-1], grid)
        torch.testing.assert_close(output.flatten(2).mT, patches)
    # The pixels of a hidden patch do not matter.
    hidden = torch.zeros(4, 6, 6, dtype=torch.bool)
    hidden[1, 2, 3] = True
    changed = image.clone()
    changed[1, :, 8:12, 12:16] = 7
    masked = model.encode(model.backbone, image, hidden)[0]
    torch.testing.assert_close(masked, model.encode(model.backbone, changed, hidden)[0])
    assert (masked[1] - patches[1]).abs().max() > 1e-4
    torch.testing.assert_close(masked[0], patches[0])


def test_gram_loss_uses_larger_images_for_the_anchor():
    """The loss is computed again from images of twice the side and bicubic maps."""
    model = build(gram_scale=2, gram_weight=3.0).double()
    inputs = views(32, 32, 8)
    with torch.no_grad():
        model.loss(inputs)  # the teacher and the anchor become the student
        model.backbone.blocks[0].mlp.fc1.weight += 0.1
        before = torch.random.get_rng_state()
        losses = model.loss(inputs)
        assert losses.keys() == {'loss_views', 'loss_patches', 'loss_gram', 'loss_koleo'}
        torch.random.set_rng_state(before)
        calls = []  # the arguments: a backbone, images, and the mask if patches are hidden
        original = model.encode
        model.encode = lambda *args: calls.append(args) or original(*args)
        model.loss(inputs)
    hidden = next(args[2] for args in calls if len(args) == 3)
    assert {tuple(args[1].shape[2:]) for args in calls} == {(16, 16), (32, 32), (8, 8)}
    large = F.interpolate(torch.cat(inputs[:2]), 16, mode='bilinear', antialias=True)
    student = original(model.backbone, large, hidden)[0]
    anchor = original(model.anchor.module, torch.cat(inputs[:2]))[0]
    maps = anchor.permute(0, 2, 1).reshape(8, 16, 8, 8)
    maps = F.interpolate(maps, (4, 4), mode='bicubic', align_corners=False)
    expected = 3 * gram_loss(student, maps.reshape(8, 16, 16).permute(0, 2, 1))
    torch.testing.assert_close(losses['loss_gram'], expected, rtol=0, atol=1e-10)
    assert expected > 1e-6


def test_gram_loss_is_zero_at_the_start():
    model = build(mask_ratio=(0.0, 0.0)).double()
    # The anchor is the student, since nothing is masked and no step was made.
    assert model.loss(views(16, 16, 8))['loss_gram'] < 1e-20


@pytest.mark.parametrize(('refresh', 'steps'), [(None, []), (3, [3, 6])])
def test_the_anchor_becomes_the_teacher_every_gram_refresh_steps(refresh, steps):
    model, refreshed = build(gram_refresh=refresh, momentum=0.5), []
    inputs = [view.float() for view in views(16, 16)]
    weight = model.anchor.module.blocks[0].attn.qkv.weight
    for step in range(7):
        before = weight.clone()
        model.loss(inputs)
        if step and not torch.equal(before, weight):
            refreshed.append(step)
            assert torch.equal(weight, model.teacher.module[0].blocks[0].attn.qkv.weight)
        model.backbone.blocks[0].attn.qkv.weight.data += 0.1
    assert refreshed == steps


def test_the_teacher_is_the_moving_average(progress):
    model = build(momentum=0.9)
    inputs = [view.float() for view in views(16, 16)]
    model.loss(inputs)
    source, average = model.neck.prototypes, model.teacher.module[1].prototypes
    assert torch.equal(source, average)
    source.data += 1
    before = average.clone()
    progress.update_info('iter', 5)
    model.loss(inputs)
    # Halfway through the 10 steps, the cosine has halved 1 - momentum.
    torch.testing.assert_close(average, before + 0.05 * (source - before))


def test_copies_share_only_frozen_parameters():
    model = build(dict(BACKBONE, frozen_stages=1))
    student = dict(model.backbone.named_parameters())
    for copy in (model.teacher.module[0], model.anchor.module):
        for name, parameter in copy.named_parameters():
            assert (parameter is student[name]) != student[name].requires_grad, name
            assert not parameter.requires_grad
        assert not copy.training
    assert student['blocks.1.mlp.fc1.weight'].requires_grad
    losses = model.loss([view.float() for view in views(16, 16, 8)])
    sum(losses.values()).backward()
    parameters = dict(model.named_parameters())
    trained = {name for name, parameter in parameters.items() if parameter.requires_grad}
    assert trained == {name for name, parameter in parameters.items() if parameter.grad is not None}
    assert not any(name.startswith(('teacher', 'anchor')) for name in trained)
    assert not trained & {'backbone.reg_token', 'backbone.cls_token', 'backbone.patch_embed.proj'}


def test_frozen_layers_in_bfloat16_need_amp():
    model = build(dict(BACKBONE, frozen_stages=1), frozen_dtype='bfloat16')
    low = {
        name for name, parameter in model.named_parameters() if parameter.dtype is torch.bfloat16
    }
    layers = ('attn.qkv', 'attn.proj', 'mlp.fc1', 'mlp.fc2')
    assert low == {
        f'backbone.blocks.0.{layer}.{part}' for layer in layers for part in ('weight', 'bias')
    }
    inputs = [view.float() for view in views(16, 16)]
    with rejects('frozen_dtype .* takes mixed precision; train with --amp'):
        model.loss(inputs)
    with torch.autocast('cpu', torch.bfloat16):
        sum(model.loss(inputs).values()).backward()
    assert model.backbone.blocks[1].mlp.fc1.weight.grad.dtype is torch.float32


def test_zero_gram_weight_has_no_anchor():
    model = build(gram_weight=0.0)
    assert model.anchor is None
    losses = model.loss([view.float() for view in views(16, 16)])
    assert losses.keys() == {'loss_views', 'loss_patches', 'loss_koleo'}


def test_views_of_partial_patches_raise():
    with rejects('large views of 18 x 18 pixels are not of whole patches of 4 pixels'):
        build().loss([view.float() for view in views(18, 18)])


def test_hybrid_backbone_raises():
    hybrid = dict(
        BACKBONE, patch_embed=dict(type='ConvEmbed', channels=(8, 16), strides=(2, 2)), img_size=16
    )
    with rejects('without a CNN, which would see the patches that are hid'):
        build(hybrid)


def gradient(model: DINOv3, inputs: list[Tensor], hidden: Tensor) -> list[Tensor]:
    """The gradient of all losses with the given mask instead of a random one."""
    module = sys.modules[type(model).__base__.__module__]  # the module of DINO, which draws masks
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, 'block_masks', lambda *ignored: hidden)
        losses = model.loss(inputs)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return [*torch.autograd.grad(sum(losses.values()), trained)]


def assert_mean_gradient(inputs: list[Tensor], hidden: Tensor, expected: list[Tensor]) -> None:
    """On each of two ranks, train on half of each view's four images.

    KoLeo is left out: it finds neighbors among the images of its rank only.
    """
    half = slice(2 * get_rank(), 2 * get_rank() + 2)
    hidden_half = hidden.unflatten(0, (2, 4))[:, half].flatten(0, 1)
    model = build(koleo_weight=0.0).double()
    drift(model)
    gradients = gradient(model, [view[half] for view in inputs], hidden_half)
    for value, whole in zip(gradients, expected, strict=True):
        torch.distributed.all_reduce(value)
        torch.testing.assert_close(value / 2, whole)  # DDP takes the mean


def drift(model: DINOv3) -> None:
    """Move the student away from its teacher and the anchor."""
    generator = torch.Generator().manual_seed(3)
    model.teacher.update_parameters(model.student())
    model.anchor.assign(model.backbone)
    for parameter in model.backbone.parameters():
        parameter.data += 0.05 * torch.randn(parameter.shape, generator=generator)


def test_two_ranks_have_the_gradient_of_one(tmp_path):
    inputs = views(16, 16, 8)
    hidden = torch.zeros(8, 4, 4, dtype=torch.bool)
    hidden[[0, 2, 3, 5, 6], :2] = True
    hidden[[1, 4, 7], 1, 1] = True
    model = build(koleo_weight=0.0).double()
    drift(model)
    on_ranks(2, tmp_path, assert_mean_gradient, inputs, hidden, gradient(model, inputs, hidden))


def test_dinov3_is_registered():
    assert MODELS.get('vit_plugin.DINOv3') is DINOv3
