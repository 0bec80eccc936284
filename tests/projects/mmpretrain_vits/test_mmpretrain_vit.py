"""MMPretrain's arguments and configs give the same outputs on our backbone.

``benchmarks/dropin.py`` tries all of MMPretrain's configs.
"""

import mmpretrain.models  # noqa: F401  fills the registry
import pytest
import torch
from mmengine.config import Config
from mmengine.registry import DefaultScope
from mmpretrain.registry import MODELS as THEIRS
from rejection import rejects

from benchmarks import dropin
from vit_plugin.models import VisionTransformer
from vit_plugin.projects.mmpretrain_vits import mmpretrain_vit
from vit_plugin.registry import MODELS

pytestmark = pytest.mark.filterwarnings('ignore')  # warnings of MMPretrain

SIZES = dict(embed_dims=32, num_heads=2, feedforward_channels=64)
TINY = dict(arch=dict(SIZES, num_layers=2), img_size=48)


@pytest.mark.parametrize(
    'config',
    [
        'vision_transformer/vit-base-p32_64xb64_in1k.py',
        'deit/deit-tiny-distilled_4xb256_in1k.py',
        'deit3/deit3-huge-p14_64xb32_in1k.py',
        'clip/clip_vit-base-p16_zeroshot-cls_in1k.py',
        'clip/vit-large-p14_headless.py',
        'mae/benchmarks/vit-base-p16_8xb128-coslr-100e_in1k.py',
        'mae/benchmarks/vit-large-p16_8xb2048-linear-coslr-90e_in1k.py',
        'dinov2/vit-giant-p14_dinov2-pre_headless.py',
        'mocov3/benchmarks/vit-small-p16_8xb128-linear-coslr-90e_in1k.py',
        'eva02/eva02-tiny-p14_in1k.py',
        'eva02/eva02-base-p14_headless.py',
        'llava/llava-7b-v1_caption.py',
    ],
)
def test_published_configs_compute_the_same(config):
    model = Config.fromfile(dropin.CONFIGS / config).to_dict()['model']
    ((_, backbone),) = dropin.backbones(model)
    assert dropin.compare(backbone, **SIZES) <= dropin.TOLERANCE


@pytest.mark.parametrize(
    ('class_name', 'changes'),
    [
        ('VisionTransformer', changes)
        for changes in (
            dict(out_indices=[0, 1], out_type='raw'),
            dict(out_indices=[0], out_type='featmap'),
            dict(out_indices=[0, 1], out_type='avg_featmap'),
            dict(out_type='avg_featmap', with_cls_token=False),
            dict(with_cls_token=False, out_type='raw', interpolate_mode='bilinear'),
            dict(in_channels=1, qkv_bias=False),
            dict(frozen_stages=0),
            dict(frozen_stages=1, pre_norm=True),
            dict(frozen_stages=2, out_type='avg_featmap'),
            dict(img_size=(48, 80), patch_size=(8, 8)),
            dict(img_size=50),
            dict(norm_cfg=dict(type='LN')),
            dict(patch_cfg=dict(norm_cfg=dict(type='LN'), bias=False, padding=0, stride=None)),
            dict(layer_cfgs=dict(qkv_bias=False, layer_scale_init_value=0.5)),
            dict(layer_cfgs=dict(act_cfg=dict(type='ReLU'), feedforward_channels=96, num_heads=4)),
            dict(layer_cfgs=dict(ffn_type='swiglu_fused'), layer_scale_init_value=1e-5),
        )
    ]
    + [
        ('DistilledVisionTransformer', dict(out_indices=[0, 1])),
        ('DistilledVisionTransformer', dict(out_type='featmap')),
        ('DeiT3', dict(use_layer_scale=False)),
        ('DeiT3', dict(with_cls_token=False, out_type='raw')),
        ('ViTEVA02', dict(with_cls_token=False, out_type='featmap', qkv_bias=False)),
        ('MoCoV3ViT', dict(frozen_stages=0, patch_size=8)),
        ('MoCoV3ViT', dict(frozen_stages=1, patch_size=8)),
    ],
)
@torch.no_grad()
def test_arguments_have_the_same_effect(class_name, changes):
    cfg = dict(dict(TINY, type=class_name, patch_size=8), **changes)
    ours = dropin.ours(cfg).double()
    theirs = dropin.original(cfg).double()
    dropin.randomize(theirs)
    # Two of MMPretrain's classes differ from their papers.
    dropin.CORRECTIONS.get(class_name, lambda model: None)(theirs)
    ours.load_state_dict(theirs.state_dict(), strict=False)
    ours.eval(), theirs.eval()
    frozen = {
        dropin.count_parameters(model) - dropin.count_trainable(model) for model in (ours, theirs)
    }
    assert len(frozen) == 1, 'the same parameters are frozen'
    images = torch.randn(2, cfg.get('in_channels', 3), 72, 56, dtype=torch.float64)
    assert dropin.difference(theirs(images), ours(images)) < dropin.TOLERANCE


@pytest.mark.parametrize(
    'class_name', ['VisionTransformer', 'DistilledVisionTransformer', 'DeiT3', 'ViTEVA02']
)
def test_names_of_archs_are_those_of_mmpretrain(class_name):
    ours, theirs = getattr(mmpretrain_vit, f'MM{class_name}').archs, THEIRS.get(class_name).arch_zoo
    added = {'mocov3-small', 'mocov3-s'}  # MoCoV3ViT's constructor adds these to every class
    assert ours.keys() == theirs.keys() - added
    for name, row in ours.items():
        assert dict(zip(mmpretrain_vit.SIZE_KEYS, row, strict=True)) == theirs[name]


@pytest.mark.parametrize(
    ('class_name', 'changes', 'words'),
    [
        (
            'VisionTransformer',
            dict(arch='B/16'),
            "arch='B/16' is not one of small, .*vit_plugin.VisionTransformer",
        ),
        (
            'VisionTransformer',
            dict(arch=dict(SIZES, num_layers=2, patch_size=8)),
            'arch takes no patch_size',
        ),
        ('VisionTransformer', dict(patch_sise=8), 'takes no patch_sise .* did you mean patch_size'),
        (
            'VisionTransformer',
            dict(patch_size=(8, 16)),
            'kernel_size and stride must be one number',
        ),
        (
            'VisionTransformer',
            dict(patch_cfg=dict(stride=4)),
            'kernel_size and stride must be one number',
        ),
        (
            'VisionTransformer',
            dict(patch_cfg=dict(padding='same')),
            "patch_cfg.padding='same' must be",
        ),
        ('VisionTransformer', dict(layer_cfgs=dict(num_fcs=3)), 'num_fcs'),
        ('VisionTransformer', dict(layer_cfgs=dict(drop_path_rate=0.1)), 'takes no drop_path_rate'),
        (
            'VisionTransformer',
            dict(layer_cfgs=dict(drop_rate=0.1)),
            'drop_rate must be the same everywhere',
        ),
        ('VisionTransformer', dict(layer_cfgs=[{}, {}]), 'layer_cfgs=.* must be a valid dict'),
        (
            'VisionTransformer',
            dict(layer_cfgs=dict(act_cfg=dict(type='HSwish'))),
            "'HSwish' is not one of",
        ),
        (
            'VisionTransformer',
            dict(norm_cfg=dict(type='LN', requires_grad=False)),
            'freeze blocks with frozen_stages',
        ),
        ('VisionTransformer', dict(interpolate_mode='nearest'), 'interpolate_mode'),
        ('VisionTransformer', dict(frozen_stages=3), 'frozen_stages=3 is out of range'),
        ('DistilledVisionTransformer', dict(pre_norm=True), 'takes no pre_norm'),
        ('DeiT3', dict(out_type='avg_featmap'), 'out_type'),
        (
            'ViTEVA02',
            dict(proj_drop_rate=0.1),
            'proj_drop_rate=0.1 must be less than or equal to 0',
        ),
        ('MoCoV3ViT', {}, 'frozen_stages must be 0 or more'),
        ('MAEViT', dict(mask_ratio=0.75), 'masks patches'),
    ],
)
def test_unsupported_arguments_raise(class_name, changes, words):
    with rejects(words):
        dropin.ours(dict(dict(TINY, type=class_name, patch_size=8), **changes))


def test_one_line_changes_the_backbone_of_a_config(tmp_path):
    """A config that inherits from MMPretrain's gets our backbone, and loads its checkpoint."""
    small = (
        f'dict(arch=dict(_delete_=True, **{TINY["arch"]}), img_size=48), head=dict(in_channels=32)'
    )
    cfgs = []
    for line in ('', "model['backbone'].update(type='vit_plugin.MMDistilledVisionTransformer')"):
        config = tmp_path / 'config.py'
        config.write_text(
            "_base_ = 'mmpretrain::deit/deit-tiny-distilled_4xb256_in1k.py'\n"
            f'model = dict(backbone={small})\n{line}\n'
        )
        cfgs.append(Config.fromfile(config).model)
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        theirs, ours = map(THEIRS.build, cfgs)
    assert isinstance(ours.backbone, VisionTransformer)
    dropin.randomize(theirs)
    ours.load_state_dict(theirs.state_dict(), strict=False)
    images = torch.randn(2, 3, 48, 48)
    ours.eval(), theirs.eval()
    with torch.no_grad():
        torch.testing.assert_close(
            ours.head(ours.extract_feat(images)), theirs.head(theirs.extract_feat(images))
        )


def test_plain_backbone_rejects_the_second_norm_of_mmpretrain():
    theirs = dropin.original(
        dict(TINY, type='VisionTransformer', patch_size=8, out_type='avg_featmap')
    )
    plain = MODELS.build(
        dict(
            type='vit_plugin.VisionTransformer', arch=dict(TINY['arch'], patch_size=8), img_size=48
        )
    )
    with rejects('ln2.weight.*MMVisionTransformer'):
        plain.load_state_dict(theirs.state_dict(), strict=False)


def test_our_weights_are_saved_and_loaded(tmp_path):
    model = dropin.ours(dict(TINY, type='VisionTransformer', patch_size=8, out_type='avg_featmap'))
    loaded = dropin.ours(dict(TINY, type='VisionTransformer', patch_size=8, out_type='avg_featmap'))
    dropin.randomize(model)
    loaded.load_state_dict(model.state_dict())
    assert torch.equal(loaded.fc_norm.weight, model.fc_norm.weight)
