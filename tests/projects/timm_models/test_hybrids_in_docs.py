"""The table of hybrids in docs/models.md is what the models are."""

import re
from pathlib import Path

import pytest
import torch

from vit_plugin.models import VisionTransformer
from vit_plugin.projects.timm_models.timm_backbone import TimmBackbone

TEXT = Path('docs/models.md').read_text().partition('## Hybrids and small encoders')[2]
SECTION = TEXT.partition('\n## ')[0]
ROWS = re.findall(
    r'^\| .*? \| `(\S+)` \| (.*?) \| (.*?) \| ([\d.]+) \| (\S+) \|$', SECTION, re.MULTILINE
)
PLAIN = re.findall(r'`(vit_\w+)`', SECTION)


@pytest.mark.nightly
@pytest.mark.parametrize('row', ROWS, ids=[row[0] for row in ROWS])
def test_a_row_is_what_the_model_is(row):
    name, strides, channels, millions, size = row
    given = {} if size == 'any' else dict(img_size=int(size))
    sides = (256, 320) if size == 'any' else (int(size),)
    with torch.device('meta'):
        model = TimmBackbone(name, out_type='pyramid', **given).eval()
        assert ', '.join(map(str, model.strides)) == strides
        assert ', '.join(map(str, model.channels)) == channels
        assert f'{sum(one.numel() for one in model.parameters()) / 1e6:.1f}' == millions
        for side in sides:
            maps = model(torch.empty(1, 3, side, side))
            assert [one.shape[-1] for one in maps] == [side // stride for stride in model.strides]


@pytest.mark.nightly
@pytest.mark.parametrize('name', PLAIN)
def test_an_encoder_of_one_width_is_a_model_of_ours(name):
    with torch.device('meta'):
        VisionTransformer(arch=f'timm://{name}')


def test_the_table_was_found():
    assert len(ROWS) > 10
    assert len(PLAIN) > 2
