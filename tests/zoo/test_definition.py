"""Models by timm's names: equal outputs, and errors for unsupported models."""

from functools import partial

import pytest
import timm
import torch
from rejection import rejects
from timm.layers import HybridEmbed
from timm.models.vision_transformer import VisionTransformer as TimmViT
from timm.models.vitamin import MbConvStages, VitCfg
from tiny_models import TINY_SIZES
from torch import nn

from benchmarks.zoo import compare, kept_blocks, randomize
from vit_plugin.models import VisionTransformer
from vit_plugin.zoo import build_on_meta, describe
from vit_plugin.zoo.definition import pooling_of

# Small models that together have all options of a backbone. `benchmarks/zoo.py` tries all names.
NAMES = [
    'deit_tiny_distilled_patch16_224',
    'vit_tiny_patch16_dinov3_qkvb',
    'eva02_tiny_patch14_224',
    'test_vit4',
]
NIGHTLY = [
    'vit_tiny_r_s16_p8_224',
    'vitamin_small_224',
    'vit_base_mci_224',
    'vit_small_resnet26d_224',
    'vit_small_patch16_rope_mixed_ape_224',
    'vit_pe_core_tiny_patch16_384',
    'eva02_base_patch16_clip_224',
    'aimv2_large_patch14_224',
    'beit_base_patch16_224',
    'beitv2_base_patch16_224',
    'beit3_base_patch16_224',
    'vit_base_patch16_sapiens2',
    'vit_base_patch16_clip_quickgelu_224',
    'vit_so400m_patch14_siglip_384',
]


@pytest.mark.parametrize(
    'name', [*NAMES, *(pytest.param(name, marks=pytest.mark.nightly) for name in NIGHTLY)]
)
def test_outputs_equal_timms(name):
    differences = compare(name, count=1)
    is_beit = name.startswith(('beit_', 'beitv2_'))  # takes images of one size in timm
    assert set(differences) == ({'native'} if is_beit else {'native', 'square', 'other'})
    assert max(differences.values()) < 1e-12


def test_the_comparison_detects_a_difference(monkeypatch):
    monkeypatch.setattr(
        'vit_plugin.zoo.positions.convert_rotary',
        lambda rope: dict(form='centred', planes='neighbours'),
    )
    assert min(compare('vit_tiny_patch16_dinov3_qkvb', count=1).values()) > 1e-6


def test_large_models_are_compared_by_some_blocks():
    assert kept_blocks(12, 768) == [0, 6, 11]
    assert kept_blocks(12, 768, 0) == list(range(12))
    assert kept_blocks(40, 4096) == [0]


def test_arguments_override_those_of_the_name():
    with torch.device('meta'):
        model = VisionTransformer(
            'timm://vit_small_patch16_dinov3.lvd1689m',
            img_size=(96, 64),
            out_indices=(2, 5),
            out_type='featmap',
            encoder=dict(reg_token=0),
            numerics=dict(norm_cfg=dict(eps=1e-4)),
            with_cls_token=False,
            pos_embed=dict(rotary=dict(shift=0.1)),
        )
    assert (model.img_size, len(model.blocks), model.num_prefix_tokens) == ((96, 64), 6, 0)
    assert model.numerics.norm_cfg == dict(type='LN', eps=1e-4)
    assert model.blocks[0].attn.qkv.bias is None  # as the name says
    assert (model.rope.options.form, model.rope.options.shift) == ('centred', 0.1)
    with torch.device('meta'):
        model = VisionTransformer(
            'timm://vit_small_patch16_dinov3', numerics='authors', pos_embed='sincos2d'
        )
    assert model.numerics.act_cfg['approximate'] == 'tanh'
    assert len(list(model.rope.parameters())) == 0
    assert type(model.position).__name__ == 'SinCos2dPosEmbed'


def test_building_draws_no_random_numbers():
    before = torch.random.get_rng_state()
    describe('vit_tiny_patch16_384')
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize(
    ('name', 'words'),
    [
        (
            'vit_dpwee_patch16_reg1_gap_256',
            r'its blocks \(DiffParallelScalingBlock\) are not known',
        ),
        ('vit_dwee_patch16_reg1_gap_256', r'its attention \(DiffAttention\) is not known'),
        ('vit_pwee_patch16_reg1_gap_256', r'its blocks \(ParallelScalingBlock\) are not known'),
        ('vit_small_patch16_18x2_224', r'its blocks \(ParallelThingsBlock\) are not known'),
        ('vit_base_patch16_rpn_224', r'its blocks \(ResPostBlock\) are not known'),
    ],
)
def test_names_with_unsupported_blocks_raise_with_the_alternative(name, words):
    with rejects(rf"{words}; take type='vit_plugin.TimmBackbone' with model_name='{name}'\."):
        describe(name)


@pytest.mark.parametrize(
    ('part', 'attribute'),
    [
        ('blocks.0', 'ls1'),
        ('blocks.0.attn', 'gate'),
        ('blocks.0.attn', 'q_norm'),
        ('blocks.0.mlp', 'norm'),
        ('', 'reg_token'),
        ('', 'attn_pool'),
        ('patch_embed', 'norm'),
    ],
)
def test_missing_attributes_of_timm_raise(monkeypatch, part, attribute):
    """If timm renames an attribute, ignoring it would give another model of the same shapes."""
    theirs = small_timm_model()
    delattr(theirs.get_submodule(part), attribute)
    monkeypatch.setattr('vit_plugin.zoo.definition.build_on_meta', lambda name: theirs)
    with rejects(f"has no attribute '{attribute}' in timm {timm.__version__}; take type="):
        (pooling_of if attribute == 'attn_pool' else describe)('of_tomorrow')


@pytest.mark.parametrize(
    ('name', 'words'),
    [
        ('vit_base_patch16_dinov9', 'has no such model; the nearest are vit_base_patch16_dinov3, '),
        (
            'vit_base_patch16_dinov3.lvd',
            'Invalid pretrained tag .* the nearest are vit_base_patch16_dinov3.lvd1689m, ',
        ),
        (
            'swin_tiny_patch4_window7_224',
            "swin_transformer of .*TimmBackbone' with model_name='swin_tiny_patch4_window7_224'",
        ),
        ('', 'has no such model'),
    ],
)
def test_unknown_names_raise(name, words):
    with rejects(words):
        VisionTransformer(f'timm://{name}')


def small_timm_model(**changes):
    """A small model of timm's class, without a name. ``changes`` are its arguments."""
    with torch.device('meta'):
        return TimmViT(
            **dict(dict(img_size=32, patch_size=8, embed_dim=32, depth=1, num_heads=2), **changes)
        )


class OtherBlock(timm.models.vision_transformer.Block):
    """An unknown class of blocks."""


@pytest.mark.parametrize(
    ('changes', 'words'),
    [
        (dict(block_fn=OtherBlock), r'its blocks \(OtherBlock\) are not known'),
        (dict(norm_layer=nn.BatchNorm1d), 'its norm BatchNorm1d is not known'),
        (dict(act_layer=nn.Softplus), 'its activation Softplus is not known'),
        (dict(patch_size=(8, 16)), 'its patches are not square'),
    ],
)
def test_unsupported_models_raise_with_the_reason(monkeypatch, changes, words):
    theirs = small_timm_model(**changes)
    monkeypatch.setattr('vit_plugin.zoo.definition.build_on_meta', lambda name: theirs)
    with rejects(f'timm://of_tomorrow cannot be computed exactly.*{words}'):
        describe('of_tomorrow')


@pytest.mark.parametrize(
    ('stem_width', 'num_stages', 'words'),
    [
        (4, 2, 'its first convolutions are not as wide as its first stage'),
        (8, 1, r'the number of stages of its CNN \(1\) is not 2'),
    ],
)
def test_unsupported_bottlenecks_raise_with_the_reason(monkeypatch, stem_width, num_stages, words):
    with torch.device('meta'):
        cnn = MbConvStages(VitCfg((8, 16, 32), (1, 1, 1), stem_width))
    theirs = small_timm_model(
        patch_size=1, embed_layer=partial(HybridEmbed, backbone=cnn, proj=False)
    )
    cnn.stages = cnn.stages[:num_stages]
    monkeypatch.setattr('vit_plugin.zoo.definition.build_on_meta', lambda name: theirs)
    with rejects(words):
        describe('of_tomorrow')


@pytest.mark.parametrize(
    ('arch', 'checkpoint'),
    [
        ('vit_tiny_patch16_dinov3_qkvb', 'timm://vit_tiny_patch16_dinov3_qkvb.some'),
        ('vit_tiny_patch16_dinov3_qkvb.some', True),
    ],
)
def test_weights_are_loaded_by_timms_name(monkeypatch, arch, checkpoint):
    created = []

    def create_model(name, pretrained=False, **kwargs):
        assert pretrained
        assert name == 'vit_tiny_patch16_dinov3_qkvb.some'
        created.append(timm.models.create_model('vit_tiny_patch16_dinov3_qkvb', **kwargs))
        randomize(created[0])
        return created[0]

    theirs = build_on_meta('vit_tiny_patch16_dinov3_qkvb')
    monkeypatch.setattr('vit_plugin.zoo.definition.build_on_meta', lambda name: theirs)
    model = VisionTransformer(
        f'timm://{arch}', init_cfg=dict(type='Pretrained', checkpoint=checkpoint)
    )
    monkeypatch.setattr(timm, 'create_model', create_model)
    model.init_weights()
    assert torch.equal(model.blocks[3].attn.qkv.v_bias, created[0].blocks[3].attn.v_bias)
    assert torch.equal(model.blocks[3].ls1.gamma, created[0].blocks[3].gamma_1)


@pytest.mark.parametrize('arch', ['B/16', dict(TINY_SIZES, num_layers=1)])
def test_checkpoint_true_without_a_name_of_timm_raises(arch):
    with rejects('checkpoint=True takes the weights that arch=timm://... names'):
        VisionTransformer(arch, init_cfg=dict(type='Pretrained', checkpoint=True))


@pytest.mark.parametrize(
    ('options', 'cause'),
    [(dict(num_heads=0), 'by zero'), (dict(act_layer='none'), "no 'none'")],
)
def test_options_that_timm_cannot_build_raise(options, cause):
    with rejects(rf'timm builds no test_vit with .* \(.*{cause}\); change them'):
        build_on_meta('test_vit', **options)
