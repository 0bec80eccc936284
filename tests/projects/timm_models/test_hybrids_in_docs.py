"""The table of hybrids in docs/models.md agrees with the models."""

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
PLAIN_NAMES = re.findall(r'`(vit_\w+)`', SECTION)


@pytest.mark.nightly
@pytest.mark.parametrize('row', ROWS, ids=[row[0] for row in ROWS])
def test_a_row_agrees_with_its_model(row):
    name, strides, channels, millions, size = row
    options = {} if size == 'any' else dict(img_size=int(size))
    sides = (256, 320) if size == 'any' else (int(size),)
    with torch.device('meta'):
        model = TimmBackbone(name, out_type='pyramid', **options).eval()
        assert ', '.join(map(str, model.strides)) == strides
        assert ', '.join(map(str, model.channels)) == channels
        count = sum(parameter.numel() for parameter in model.parameters())
        assert f'{count / 1e6:.1f}' == millions
        for side in sides:
            maps = model(torch.empty(1, 3, side, side))
            assert [level.shape[-1] for level in maps] == [
                side // stride for stride in model.strides
            ]


@pytest.mark.nightly
@pytest.mark.parametrize('name', PLAIN_NAMES)
def test_named_plain_encoders_are_vision_transformers(name):
    with torch.device('meta'):
        VisionTransformer(arch=f'timm://{name}')


def test_the_table_is_parsed():
    assert len(ROWS) > 10
    assert len(PLAIN_NAMES) > 2
