"""The list of names, a name as a config, and the page of the documentation."""

import re
from pathlib import Path

import pytest
import timm
import torch
from mmengine.config import Config

from vit_plugin.models import VisionTransformer
from vit_plugin.zoo import names
from vit_plugin.zoo.listing import config_of, markdown, pixels_of

PAGE = Path('docs/checkpoints.md')


@pytest.mark.parametrize('name', ['vit_tiny_patch16_dinov3_qkvb', 'vit_small_r26_s32_224.augreg_in21k'])
def test_the_config_spelt_out_is_the_same_model(name):
    cfg = Config.fromstring(Config(config_of(name)).pretty_text, '.py')
    assert cfg.backbone.pop('type') == 'vit_plugin.VisionTransformer'
    assert cfg.backbone.pop('init_cfg', {}).get('checkpoint') == (f'timm://{name}' if '.' in name else None)
    assert cfg.get('data_preprocessor') == (dict(mean=[127.5] * 3, std=[127.5] * 3) if '.' in name else None)
    with torch.device('meta'):
        assert str(VisionTransformer(**cfg.backbone)) == str(VisionTransformer(f'timm://{name}'))


@pytest.mark.parametrize('family', ['dinov3', 'dinov2', 'siglip2'])
def test_recipes_expect_the_pixels_of_their_weights(family):
    cfg = Config.fromfile(f'configs/_base_/backbones/{family}-vit-base-p16.py')
    assert cfg.pixels == pixels_of(cfg.backbone.arch.removeprefix('timm://'))


def listed(section: str) -> list[str]:
    """The names with their tags in a part of the page."""
    rows = re.findall(r'^[|] `(\S+?)` .*[|] ([^|]+) [|]$', section, re.MULTILINE)
    return [f'{model}.{tag}' for model, tags in rows for tag in re.findall('`(.+?)`', tags)]


@pytest.mark.skipif(f'timm {timm.__version__}.' not in PAGE.read_text(), reason='the page is of another timm')
def test_the_page_is_up_to_date():
    page, known = PAGE.read_text(), names(pretrained=True)
    *sections, others = page.split('\n## ')[1:]
    left_out = re.findall(r'`(\w+\.\w+)`', others)
    assert sorted(listed(page) + left_out) == sorted(known)
    for section in sections:  # each has its first name's row, and all its names have its pixels
        members = listed(section)
        model = members[0].partition('.')[0]
        first = [name for name in members if name.startswith(f'{model}.')]
        assert section.startswith('\n'.join(markdown(first)).partition('\n## ')[2])
        assert all(pixels_of(name) == pixels_of(members[0]) for name in members)


@pytest.mark.nightly
@pytest.mark.skipif(f'timm {timm.__version__}.' not in PAGE.read_text(), reason='the page is of another timm')
def test_the_whole_page_is_up_to_date():
    assert '\n'.join(markdown(names(pretrained=True))) + '\n' == PAGE.read_text()
