"""MMPretrain's self-supervised algorithms, and ours, on our backbones.

Their losses are compared with those on MMPretrain's backbone, and runs are resumed and fine-tuned.
"""

import pytest
import torch
from mmengine.logging import MessageHub
from mmengine.registry import MODELS, DefaultScope
from rejection import rejects
from torch import nn
from unlabeled_runs import unlabeled

from benchmarks.exactness import stop_and_resume, train
from benchmarks.tiny_run import differences, final_checkpoint, tiny_cfg
from vit_plugin.models import load_weights

pytestmark = pytest.mark.filterwarnings('ignore')
ARCH = dict(embed_dims=32, num_layers=2, num_heads=4, feedforward_channels=64)


def mlp(in_channels: int, **options) -> dict:
    return dict(
        options,
        type='NonLinearNeck',
        in_channels=in_channels,
        hid_channels=16,
        out_channels=8,
        with_last_bn_affine=False,
        with_avg_pool=False,
        norm_cfg=dict(type='BN1d'),
    )


MOCO = dict(
    type='MoCoV3',
    neck=mlp(32, num_layers=3),
    head=dict(
        type='MoCoV3Head', predictor=mlp(8), loss=dict(type='CrossEntropyLoss'), temperature=0.2
    ),
)


def build(backbone: dict) -> nn.Module:
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        model = MODELS.build(dict(MOCO, backbone=backbone))
        model.init_weights()
    return model.double().train()


def test_mocov3_loss_equals_that_on_mmpretrains_backbone():
    """In three steps, so the updates of the momentum encoder are compared too."""
    MessageHub.get_current_instance().update_info('max_iters', 10)
    theirs = build(
        dict(type='MoCoV3ViT', arch=ARCH, img_size=32, patch_size=8, stop_grad_conv1=True)
    )
    theirs.backbone.pos_embed.requires_grad = False
    ours = build(
        dict(
            type='vit_plugin.VisionTransformer',
            arch=dict(ARCH, patch_size=8),
            img_size=32,
            numerics='timm',
            patch_embed=dict(frozen=True),
        )
    )
    ours.backbone.pos_embed.requires_grad = False
    load_weights(ours.backbone, theirs.backbone.state_dict())
    for part in ('neck', 'head'):
        getattr(ours, part).load_state_dict(getattr(theirs, part).state_dict())
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.5) for model in (theirs, ours)]
    rng, losses = torch.Generator().manual_seed(0), []
    for _ in range(3):
        views = [torch.randn(4, 3, 32, 32, dtype=torch.double, generator=rng) for _ in range(2)]
        for model, optimizer in zip((theirs, ours), optimizers, strict=True):
            loss = model.loss(views, [])['loss']
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    # Losses of the two models alternate.
    assert losses[1::2] == pytest.approx(losses[::2], rel=1e-9)
    assert len({round(loss, 6) for loss in losses}) == 3  # each step changes the loss


BACKBONE = dict(
    type='vit_plugin.VisionTransformer',
    img_size=8,
    patch_embed=dict(in_channels=1),
    drop_path_rate=0.2,
    arch=dict(ARCH, patch_size=2),
    pos_embed=dict(type='sincos2d', endpoint=False),
)
VIEW = dict(
    augments=[
        dict(type='RandomResizedCrop', scale=8, crop_ratio_range=(0.5, 1.0)),
        dict(type='RandomFlip', prob=0.5),
    ]
)
LOSS = dict(type='PixelReconstructionLoss', criterion='L2')
DINO = dict(
    type='vit_plugin.DINO',
    backbone=BACKBONE,
    neck=dict(
        type='vit_plugin.DINONeck', in_channels=32, hid_channels=16, bottleneck=8, out_channels=12
    ),
    head=dict(type='vit_plugin.DINOHead', out_channels=12, warmup=0.5),
)
ALGORITHMS = {
    'mocov3': dict(MOCO, backbone=BACKBONE),
    'dino': DINO,
    'dinov2': dict(
        DINO,
        mask_ratio=(0.1, 0.5),
        koleo_weight=0.1,
        backbone=dict(BACKBONE, type='vit_plugin.IBOTViT'),
    ),
    'mae': dict(
        type='MAE',
        backbone=dict(BACKBONE, type='vit_plugin.MAEViT'),
        neck=dict(
            type='MAEPretrainDecoder',
            num_patches=16,
            patch_size=2,
            in_chans=1,
            embed_dim=32,
            decoder_embed_dim=16,
            decoder_depth=1,
            decoder_num_heads=2,
        ),
        head=dict(type='MAEPretrainHead', norm_pix=True, patch_size=2, in_channels=1, loss=LOSS),
    ),
    'simmim': dict(
        type='SimMIM',
        backbone=dict(BACKBONE, type='vit_plugin.SimMIMViT'),
        neck=dict(type='SimMIMLinearDecoder', in_channels=32, encoder_stride=2),
        head=dict(type='SimMIMHead', patch_size=2, loss=LOSS),
    ),
}
MASK = dict(
    type='SimMIMMaskGenerator', input_size=8, mask_patch_size=4, model_patch_size=2, mask_ratio=0.5
)


def pretraining_options(name: str) -> dict:
    """Changes of ``tiny_cfg`` that pre-train with one of ``ALGORITHMS``."""
    view = dict(VIEW, number=1 if name in ('mae', 'simmim') else 2)
    return unlabeled(ALGORITHMS[name], view, [MASK] if name == 'simmim' else [])


@pytest.mark.nightly
@pytest.mark.parametrize('name', ALGORITHMS)
def test_resumed_run_ends_as_an_uninterrupted_one(name, tmp_path):
    """The EMA weights, their step and DINO's center are compared too."""
    train(tiny_cfg(tmp_path / 'whole', **pretraining_options(name)))
    stop_and_resume(tmp_path / 'stopped', 6, 'epoch', **pretraining_options(name))
    assert (
        differences(final_checkpoint(tmp_path / 'whole'), final_checkpoint(tmp_path / 'stopped'))
        == []
    )


def test_pretrained_backbone_loads_into_a_classifier():
    """Keys outside the backbone are reported by ``load_state_dict`` and by ``load_weights``."""
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        pretrained = MODELS.build(ALGORITHMS['simmim'])
        classifier = MODELS.build(
            dict(
                type='ImageClassifier',
                backbone=BACKBONE,
                head=dict(type='vit_plugin.ViTClsHead', num_classes=10, in_channels=32),
            )
        )
    keys = classifier.load_state_dict(pretrained.state_dict(), strict=False)
    assert 'mask_token' in str(load_weights(classifier, pretrained.state_dict()))
    assert {key.partition('.')[0] for key in keys.missing_keys} == {'head'}
    assert set(keys.unexpected_keys) == {'neck.decoder.0.weight', 'neck.decoder.0.bias'}


@pytest.mark.parametrize('prefix', ['backbone.', 'teacher.module.0.'])
def test_prefix_selects_student_or_teacher(prefix, tmp_path):
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        pretrained = MODELS.build(ALGORITHMS['dino'])
    source = pretrained.get_submodule(prefix.rstrip('.'))
    nn.init.normal_(source.blocks[1].attn.qkv.weight)
    torch.save(dict(state_dict=pretrained.state_dict()), tmp_path / 'dino.pth')
    backbone = MODELS.build(
        dict(
            BACKBONE,
            init_cfg=dict(type='Pretrained', checkpoint=str(tmp_path / 'dino.pth'), prefix=prefix),
        )
    )
    backbone.init_weights()
    assert torch.equal(backbone.blocks[1].attn.qkv.weight, source.blocks[1].attn.qkv.weight)


def test_ema_weights_inside_a_sharded_model_raise():
    from vit_plugin.engine.sharding.shard import check_averages

    with DefaultScope.overwrite_default_scope('mmpretrain'):
        model = MODELS.build(ALGORITHMS['mocov3'])
    with rejects('sharding: MoCoV3 updates the averages .momentum_encoder. within its step'):
        check_averages(model)
