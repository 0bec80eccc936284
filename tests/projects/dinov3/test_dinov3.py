"""The objective, its copies, and what it trains: beside a transcription, stopped and resumed."""

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
    random = torch.Generator().manual_seed(1)
    return [
        torch.randn(number, 3, side, side, generator=random, dtype=torch.float64) for side in sides
    ]


@pytest.mark.parametrize(
    'backbone', [one for one in (BACKBONE, WINDOWED) if one['type'][11:] in RIGHT]
)
def test_the_patches_and_the_vector_are_the_backbones_own(backbone):
    model = build(backbone).double()
    image = views(24)[0]
    patches, vector = model.encode(model.backbone, image)
    tokens, grid = model.backbone.features(image)
    assert patches.shape == (4, 36, 16)
    expected = tokens[-1][:, :-36]
    if backbone is BACKBONE:
        torch.testing.assert_close(vector, expected[:, 0])
    else:
        torch.testing.assert_close(vector, expected.mean(dim=1))
        assert expected.shape[1] == 4
        output = model.backbone.output(tokens[-1], grid)
        torch.testing.assert_close(output.flatten(2).mT, patches)
    hidden = torch.zeros(4, 6, 6, dtype=torch.bool)
    hidden[1, 2, 3] = True
    other = image.clone()
    other[1, :, 8:12, 12:16] = 7
    masked = model.encode(model.backbone, image, hidden)[0]
    torch.testing.assert_close(masked, model.encode(model.backbone, other, hidden)[0])
    assert (masked[1] - patches[1]).abs().max() > 1e-4
    torch.testing.assert_close(masked[0], patches[0])


def test_the_anchors_loss_is_the_papers_at_its_resolution():
    """Its larger images, bicubic maps and squared differences of cosines, in other words."""
    model = build(gram_scale=2, gram_weight=3.0).double()
    inputs = views(32, 32, 8)
    with torch.no_grad():
        model.loss(inputs)  # the teacher and the anchor become the student
        model.backbone.blocks[0].mlp.fc1.weight += 0.1
        before = torch.random.get_rng_state()
        losses = model.loss(inputs)
        assert losses.keys() == {'loss_views', 'loss_patches', 'loss_gram', 'loss_koleo'}
        torch.random.set_rng_state(before)
        seen = []
        original = model.encode
        model.encode = lambda *given: seen.append(given) or original(*given)
        model.loss(inputs)
    hidden = next(given[2] for given in seen if len(given) == 3)
    assert {tuple(given[1].shape[2:]) for given in seen} == {(16, 16), (32, 32), (8, 8)}
    large = F.interpolate(torch.cat(inputs[:2]), 16, mode='bilinear', antialias=True)
    student = original(model.backbone, large, hidden)[0]
    anchor = original(model.anchor.module, torch.cat(inputs[:2]))[0]
    maps = anchor.permute(0, 2, 1).reshape(8, 16, 8, 8)
    maps = F.interpolate(maps, (4, 4), mode='bicubic', align_corners=False)
    expected = 3 * gram_loss(student, maps.reshape(8, 16, 16).permute(0, 2, 1))
    torch.testing.assert_close(losses['loss_gram'], expected, rtol=0, atol=1e-10)
    assert expected > 1e-6


def test_at_its_start_the_anchor_holds_nothing_back():
    model = build(mask_ratio=(0.0, 0.0)).double()
    assert model.loss(views(16, 16, 8))['loss_gram'] < 1e-20


@pytest.mark.parametrize(('refresh', 'steps'), [(None, []), (3, [3, 6])])
def test_the_anchor_becomes_the_teacher_every_so_often(refresh, steps):
    model, taken = build(gram_refresh=refresh, momentum=0.5), []
    inputs = [view.float() for view in views(16, 16)]
    weight = model.anchor.module.blocks[0].attn.qkv.weight
    for step in range(7):
        before = weight.clone()
        model.loss(inputs)
        if step and not torch.equal(before, weight):
            taken.append(step)
            assert torch.equal(weight, model.teacher.module[0].blocks[0].attn.qkv.weight)
        model.backbone.blocks[0].attn.qkv.weight.data += 0.1
    assert taken == steps


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
    torch.testing.assert_close(average, before + 0.05 * (source - before))


def test_copies_share_what_is_frozen_and_nothing_else():
    model = build(dict(BACKBONE, frozen_stages=1))
    mine = dict(model.backbone.named_parameters())
    for copy in (model.teacher.module[0], model.anchor.module):
        for name, other in copy.named_parameters():
            assert (other is mine[name]) != mine[name].requires_grad, name
            assert not other.requires_grad
        assert not copy.training
    assert mine['blocks.1.mlp.fc1.weight'].requires_grad
    losses = model.loss([view.float() for view in views(16, 16, 8)])
    sum(losses.values()).backward()
    trained = {name for name, one in model.named_parameters() if one.requires_grad}
    assert trained == {name for name, one in model.named_parameters() if one.grad is not None}
    assert not any(name.startswith(('teacher', 'anchor')) for name in trained)
    assert not trained & {'backbone.reg_token', 'backbone.cls_token', 'backbone.patch_embed.proj'}


def test_frozen_layers_may_be_in_bfloat16():
    model = build(dict(BACKBONE, frozen_stages=1), frozen_dtype='bfloat16')
    low = {name for name, one in model.named_parameters() if one.dtype is torch.bfloat16}
    layers = ('attn.qkv', 'attn.proj', 'mlp.fc1', 'mlp.fc2')
    kinds = ('weight', 'bias')
    assert low == {f'backbone.blocks.0.{layer}.{kind}' for layer in layers for kind in kinds}
    inputs = [view.float() for view in views(16, 16)]
    with rejects('frozen_dtype .* takes mixed precision; train with --amp'):
        model.loss(inputs)
    with torch.autocast('cpu', torch.bfloat16):
        sum(model.loss(inputs).values()).backward()
    assert model.backbone.blocks[1].mlp.fc1.weight.grad.dtype is torch.float32


def test_without_weight_there_is_no_anchor():
    model = build(gram_weight=0.0)
    assert model.anchor is None
    losses = model.loss([view.float() for view in views(16, 16)])
    assert losses.keys() == {'loss_views', 'loss_patches', 'loss_koleo'}


def test_a_cnn_would_see_what_is_hidden():
    hybrid = dict(
        BACKBONE, patch_embed=dict(type='ConvEmbed', channels=(8, 16), strides=(2, 2)), img_size=16
    )
    with rejects('without a CNN, which would see the patches that are hid'):
        build(hybrid)


def gradient(model: DINOv3, inputs: list[Tensor], hidden: Tensor) -> list[Tensor]:
    """Of all losses but KoLeo, whose neighbors are of one process."""
    import sys

    module = sys.modules[type(model).__mro__[1].__module__]
    before, module.block_masks = module.block_masks, lambda *ignored: hidden
    try:
        losses = model.loss(inputs)
    finally:
        module.block_masks = before
    trained = [one for one in model.parameters() if one.requires_grad]
    return [*torch.autograd.grad(sum(losses.values()), trained)]


def its_part(inputs: list[Tensor], hidden: Tensor, expected: list[Tensor]) -> None:
    part = slice(2 * get_rank(), 2 * get_rank() + 2)
    mine = hidden.unflatten(0, (2, 4))[:, part].flatten(0, 1)
    model = build(koleo_weight=0.0).double()
    drift(model)
    found = gradient(model, [view[part] for view in inputs], mine)
    for one, whole in zip(found, expected, strict=True):
        torch.distributed.all_reduce(one)
        torch.testing.assert_close(one / 2, whole)  # DDP takes the mean


def drift(model: DINOv3) -> None:
    """Move the student away from its teacher and the anchor."""
    generator = torch.Generator().manual_seed(3)
    model.teacher.update_parameters(model.student())
    model.anchor.assign(model.backbone)
    for parameter in model.backbone.parameters():
        parameter.data += 0.05 * torch.randn(parameter.shape, generator=generator)


def test_two_processes_have_the_gradient_of_one(tmp_path):
    inputs = views(16, 16, 8)
    hidden = torch.zeros(8, 4, 4, dtype=torch.bool)
    hidden[[0, 2, 3, 5, 6], :2] = True
    hidden[[1, 4, 7], 1, 1] = True
    model = build(koleo_weight=0.0).double()
    drift(model)
    on_ranks(2, tmp_path, its_part, inputs, hidden, gradient(model, inputs, hidden))


def test_it_is_registered():
    assert MODELS.get('vit_plugin.DINOv3') is DINOv3
