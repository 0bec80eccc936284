"""The list of timm's names, and the config of a name."""

import pytest
import torch
from mmengine.config import Config

from vit_plugin.models import VisionTransformer
from vit_plugin.zoo.catalog import catalog_config, catalog_lines, license_lines, pretrained_pixels


@pytest.mark.parametrize(
    'name', ['vit_tiny_patch16_dinov3_qkvb', 'vit_small_r26_s32_224.augreg_in21k']
)
def test_the_config_of_a_name_builds_the_same_model(name):
    cfg = Config.fromstring(Config(catalog_config(name)).pretty_text, '.py')
    assert cfg.backbone.pop('type') == 'vit_plugin.VisionTransformer'
    checkpoint = cfg.backbone.pop('init_cfg', {}).get('checkpoint')
    if '.' in name:  # with the tag of its weights
        assert checkpoint == f'timm://{name}'
        assert cfg.data_preprocessor == dict(mean=[127.5] * 3, std=[127.5] * 3)
    else:
        assert checkpoint is None
        assert cfg.get('data_preprocessor') is None
    with torch.device('meta'):
        assert str(VisionTransformer(**cfg.backbone)) == str(VisionTransformer(f'timm://{name}'))


@pytest.mark.parametrize('family', ['dinov3', 'dinov2', 'siglip2'])
def test_recipes_normalize_as_their_weights_expect(family):
    cfg = Config.fromfile(f'configs/_base_/backbones/{family}-vit-base-p16.py')
    assert cfg.pixels == pretrained_pixels(cfg.backbone.arch.removeprefix('timm://'))


def test_each_name_is_listed_with_sizes_or_the_reason():
    supported, other = list(
        catalog_lines(['vit_tiny_patch16_224', 'vit_dpwee_patch16_reg1_gap_256'])
    )[1:]
    assert supported.split() == ['vit_tiny_patch16_224', '192', '12', '3', '16', '224', '5,524,416']
    assert 'not supported' in other
    assert next(license_lines(['vit_base_patch16_dinov3.lvd1689m'])).split()[1] == 'dinov3-license'
