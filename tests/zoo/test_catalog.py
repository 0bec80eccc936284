"""The list of names, and a name as a config."""

import pytest
import torch
from mmengine.config import Config

from vit_plugin.models import VisionTransformer
from vit_plugin.zoo.catalog import catalog_config, licenses, lines, pretrained_pixels


@pytest.mark.parametrize(
    'name', ['vit_tiny_patch16_dinov3_qkvb', 'vit_small_r26_s32_224.augreg_in21k']
)
def test_the_config_spelled_out_is_the_same_model(name):
    cfg = Config.fromstring(Config(catalog_config(name)).pretty_text, '.py')
    assert cfg.backbone.pop('type') == 'vit_plugin.VisionTransformer'
    assert cfg.backbone.pop('init_cfg', {}).get('checkpoint') == (
        f'timm://{name}' if '.' in name else None
    )
    assert cfg.get('data_preprocessor') == (
        dict(mean=[127.5] * 3, std=[127.5] * 3) if '.' in name else None
    )
    with torch.device('meta'):
        assert str(VisionTransformer(**cfg.backbone)) == str(VisionTransformer(f'timm://{name}'))


@pytest.mark.parametrize('family', ['dinov3', 'dinov2', 'siglip2'])
def test_recipes_expect_the_pixels_of_their_weights(family):
    cfg = Config.fromfile(f'configs/_base_/backbones/{family}-vit-base-p16.py')
    assert cfg.pixels == pretrained_pixels(cfg.backbone.arch.removeprefix('timm://'))


def test_a_line_for_each_name():
    supported, other = list(lines(['vit_tiny_patch16_224', 'vit_dpwee_patch16_reg1_gap_256']))[1:]
    assert supported.split() == ['vit_tiny_patch16_224', '192', '12', '3', '16', '224', '5,524,416']
    assert 'not supported' in other
    assert next(licenses(['vit_base_patch16_dinov3.lvd1689m'])).split()[1] == 'dinov3-license'
