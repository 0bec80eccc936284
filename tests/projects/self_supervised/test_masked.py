"""Encoders that mask patches equal those of MMPretrain, and see nothing of masked patches."""

import re

import pytest
import torch
from mmengine.registry import MODELS, DefaultScope
from rejection import rejects
from tiny_models import randomize
from torch import Tensor

from vit_plugin.config import check_channels
from vit_plugin.models import IBOTViT, MAEViT, SimMIMViT, VisionTransformer, load_weights

ARCH = dict(embed_dims=32, num_layers=2, num_heads=4, feedforward_channels=64)
PURE = dict(arch=dict(ARCH, patch_size=8), img_size=32)
HYBRID = dict(
    arch=ARCH,
    img_size=32,
    patch_embed=dict(type='ResNetEmbed', stage_depths=(1, 1), width=8, root_stride=2, patch_size=2),
    numerics=dict(stem_norm_cfg=dict(type='GN', num_groups=4)),
)


def images(seed: int = 0) -> Tensor:
    return torch.randn(
        2, 3, 32, 32, dtype=torch.double, generator=torch.Generator().manual_seed(seed)
    )


def build(cfg: dict) -> torch.nn.Module:
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        model = MODELS.build(cfg)
        model.init_weights()
    return model.double()


def renamed(name: str) -> str:
    """Our name of a parameter of MMPretrain's BEiT."""
    for theirs, ours in (
        (r'^ln1', 'norm'),
        (r'\bln', 'norm'),
        (r'ffn\.layers\.0\.0', 'mlp.fc1'),
        (r'ffn\.layers\.1', 'mlp.fc2'),
        (r'^layers', 'blocks'),
        (r'gamma_(\d)', r'ls\1.gamma'),
        (r'attn\.([qv])_', r'attn.qkv.\1_'),
        ('projection', 'proj'),
    ):
        name = re.sub(theirs, ours, name)
    return name


@pytest.mark.filterwarnings('ignore')
def test_mae_equals_that_of_mmpretrain():
    theirs = randomize(build(dict(type='MAEViT', arch=ARCH, img_size=32, patch_size=8)))
    ours = build(dict(PURE, type='vit_plugin.MAEViT', numerics='timm'))
    load_weights(ours, theirs.state_dict())
    torch.manual_seed(0)
    tokens, mask, ids_restore = theirs(images())
    torch.manual_seed(0)
    outputs = ours(images())
    torch.testing.assert_close(outputs[0], tokens, rtol=0, atol=1e-12)
    assert torch.equal(outputs[1].float(), mask)
    assert torch.equal(outputs[2], ids_restore)
    torch.testing.assert_close(
        ours(images(), mask=None)[0], theirs(images(), mask=None)[0][:, 0], rtol=0, atol=1e-12
    )


@pytest.mark.filterwarnings('ignore')
def test_simmim_equals_masked_beit_of_mmpretrain():
    """MMPretrain has SimMIM only on Swin, but its BEiT masks patches of a ViT in the same way."""
    theirs = randomize(
        build(
            dict(
                type='BEiTPretrainViT',
                arch=ARCH,
                img_size=32,
                patch_size=8,
                use_abs_pos_emb=True,
                use_shared_rel_pos_bias=False,
                layer_scale_init_value=0.1,
            )
        )
    )
    ours = build(
        dict(
            PURE,
            type='vit_plugin.SimMIMViT',
            numerics='timm',
            encoder=dict(qkv_bias='qv', layer_scale_init_value=0.1),
        )
    )
    keys = ours.load_state_dict(
        {renamed(name): value for name, value in theirs.state_dict().items()}, strict=False
    )
    assert (keys.missing_keys, keys.unexpected_keys) == ([], [])
    mask = (torch.rand(2, 4, 4, generator=torch.Generator().manual_seed(1)) < 0.5).long()
    expected = theirs(images(), mask)[0]
    tokens = ours(images(), mask)[0].flatten(2).transpose(1, 2)
    torch.testing.assert_close(tokens, expected[:, 1:], rtol=0, atol=1e-12)


@pytest.mark.parametrize('options', [PURE, HYBRID], ids=['pure', 'hybrid'])
def test_pixels_of_masked_patches_do_not_matter(options):
    """They do not matter to a CNN either, although its receptive fields overlap."""
    encoder = randomize(MAEViT(**options).double())
    torch.manual_seed(0)
    tokens, mask, _ = encoder(images())
    assert tokens.shape == (2, 1 + 4, 32)
    assert mask.sum(1).tolist() == [12, 12]
    is_masked = (
        mask.unflatten(1, (4, 4)).repeat_interleave(8, 1).repeat_interleave(8, 2)[:, None].bool()
    )
    changed = torch.where(is_masked, images(1), images())
    torch.manual_seed(0)
    assert torch.equal(encoder(changed)[0], tokens)
    torch.manual_seed(0)
    assert not torch.equal(encoder(torch.where(is_masked, images(), images(1)))[0], tokens)
    simmim = randomize(SimMIMViT(**options).double())
    assert torch.equal(
        simmim(images(), mask.unflatten(1, (4, 4)))[0],
        simmim(changed, mask.unflatten(1, (4, 4)))[0],
    )


@pytest.mark.parametrize('kind', [MAEViT, SimMIMViT])
def test_without_a_mask_outputs_equal_those_of_vision_transformer(kind):
    encoder, plain = (
        kind(**HYBRID),
        VisionTransformer(**HYBRID, out_type='featmap' if kind is SimMIMViT else None),
    )
    keys = plain.load_state_dict(randomize(encoder).state_dict(), strict=False)
    assert (keys.missing_keys, keys.unexpected_keys) == (
        [],
        ['mask_token'] if kind is SimMIMViT else [],
    )
    x = images().float()
    assert torch.equal(encoder(x, mask=None)[0], plain(x)[0])


@pytest.mark.parametrize('options', [PURE, HYBRID], ids=['pure', 'hybrid'])
@pytest.mark.parametrize('out_type', ['cls_token', 'avg_featmap'])
def test_ibot_encoder_returns_patches_and_vector(options, out_type):
    """They equal the outputs of two other encoders with the same weights, masked or not."""
    encoder = randomize(IBOTViT(**options, out_type=out_type).double())
    maps = SimMIMViT(**options, out_type='featmap').double()
    plain = VisionTransformer(**options, out_type=out_type).double()
    maps.load_state_dict(encoder.state_dict())
    plain.load_state_dict(encoder.state_dict(), strict=False)
    mask = torch.rand(2, 4, 4, generator=torch.Generator().manual_seed(1)) < 0.5
    for optional_mask in (None, mask):
        patches, vector = encoder(images(), optional_mask)
        expected = maps(images(), optional_mask)[0].flatten(2).transpose(1, 2)
        torch.testing.assert_close(patches, expected, rtol=0, atol=1e-12)
        if out_type == 'avg_featmap':
            torch.testing.assert_close(vector, expected.mean(dim=1), rtol=0, atol=1e-12)
    torch.testing.assert_close(encoder(images())[-1], plain(images())[-1], rtol=0, atol=1e-12)
    assert not torch.equal(encoder(images(), mask)[-1], encoder(images())[-1])


def test_the_mask_token_has_the_depth_and_no_weight_decay_of_a_token():
    encoder = SimMIMViT(**PURE)
    assert 'mask_token' in encoder.no_weight_decay()
    assert encoder.get_layer_depth('backbone.mask_token', 'backbone.') == encoder.get_layer_depth(
        'cls_token'
    )


@pytest.mark.parametrize(
    ('kind', 'options', 'sentence'),
    [
        (MAEViT, dict(mask_ratio=0.99), 'mask_ratio=0.99 of 4 x 4 patches leaves 0 visible'),
        (
            MAEViT,
            dict(with_cls_token=False, out_type='featmap'),
            'decoder takes a class token and no other',
        ),
        (MAEViT, dict(encoder=dict(reg_token=1)), 'decoder takes a class token and no other'),
        (MAEViT, dict(pos_embed='relative'), 'need all patches of the grid'),
        (MAEViT, dict(pos_embed=dict(rotary=dict(form='index'))), 'need all patches of the grid'),
        (SimMIMViT, dict(out_type='raw'), "SimMIMViT: out_type='raw' must be 'featmap'"),
        (
            IBOTViT,
            dict(out_type='featmap'),
            "IBOTViT: out_type='featmap' must be 'cls_token' or 'avg_featmap'",
        ),
        (
            VisionTransformer,
            dict(pos_embed=dict(type='learned', endpoint=False)),
            "endpoint belongs to type='sincos2d'",
        ),
    ],
)
def test_wrong_arguments_raise(kind, options, sentence):
    with rejects(sentence):
        kind(**{**PURE, **options})


def test_mask_of_another_size_raises():
    with rejects('mask of 2 x 2 patches of 8 pixels does not fit images of 32 x 32'):
        SimMIMViT(**PURE)(images().float(), torch.ones(2, 2, 2))
    with rejects('mask of 4 x 4 patches of 8 pixels does not fit images of 64 x 64'):
        MAEViT(**PURE)(torch.zeros(1, 3, 64, 64))


def test_frozen_stem_gets_no_gradient(recwarn):
    encoder = VisionTransformer(**PURE, patch_embed=dict(frozen=True)).train()
    encoder(images().float())[0].sum().backward()
    assert {name for name, parameter in encoder.named_parameters() if parameter.grad is None} == {
        'patch_embed.proj.weight',
        'patch_embed.proj.bias',
    }
    assert not encoder.patch_embed.training


def test_sincos_positions_without_endpoint_equal_the_authors():
    """The same as ``pos_embed.py`` of facebookresearch/mae.

    The frequencies of the waves are 10,000 ** -(i / 8), where 8 is a quarter of the width.
    """
    encoder = VisionTransformer(**PURE, pos_embed=dict(type='sincos2d', endpoint=False))
    table = encoder.position.table(None, (4, 4))[0]
    column, row = 3, 2
    waves = 10_000 ** -(torch.arange(8) / 8)
    expected = torch.cat(
        [f(coordinate * waves) for coordinate in (column, row) for f in (torch.sin, torch.cos)]
    )
    torch.testing.assert_close(table[row * 4 + column], expected)


@pytest.mark.parametrize(
    ('kind', 'neck', 'words'),
    [
        ('MAEViT', dict(embed_dim=16), 'embed_dim=16 .*: set it to 32'),
        ('SimMIMViT', dict(in_channels=16), 'in_channels=16 .*: set it to 32'),
        ('SimMIMViT', dict(in_channels=32, encoder_stride=16), 'encoder_stride=16 .*: set it to 8'),
    ],
)
def test_decoders_of_another_width_or_stride_raise(kind, neck, words):
    backbone = dict(PURE, type=f'vit_plugin.{kind}')
    with rejects(f'model.neck.{words}'):
        check_channels(dict(backbone=backbone, neck=dict(type='Decoder', **neck)))
