"""The same numbers as the authors' code. As timm's: ``tests/weights/test_formats.py``."""

import pytest
import torch
from authors import NAMES, Golden, assert_same

from vit_plugin.models import TokenPooling, VisionTransformer, ViTClsHead


@pytest.mark.parametrize('name', NAMES)
def test_golden_outputs_of_the_authors(name):
    golden = Golden(name)
    has_cls = golden.meta['classifier'] == 'token'
    backbone = VisionTransformer(
        golden.arch, golden.meta['size'], with_cls_token=has_cls, out_type='raw'
    ).eval()
    backbone.load_state_dict(golden.backbone_state())
    neck = TokenPooling('cls' if has_cls else 'gap', num_prefix_tokens=int(has_cls))
    head = ViTClsHead(golden.meta['classes'], golden.meta['hidden'], hidden_dim=golden.meta['rep'])
    head.load_state_dict(golden.head_state())
    with torch.no_grad():
        (tokens,) = backbone(golden.images)
        logits = head(neck((tokens,)))
    assert_same(tokens, golden.tokens)
    assert_same(logits, golden.logits)
