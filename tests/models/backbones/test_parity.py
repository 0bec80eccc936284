"""The same numbers as the authors' code and as timm's."""

import pytest
import timm
import torch
from authors import NAMES, Golden, assert_same
from tiny_models import randomize

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


TIMM = {
    'Ti/16': 'vit_tiny_patch16_224',
    'S/32': 'vit_small_patch32_224',
    'S/16': 'vit_small_patch16_224',
    'B/32': 'vit_base_patch32_224',
    'B/16': 'vit_base_patch16_224',
    'B/8': 'vit_base_patch8_224',
    'L/32': 'vit_large_patch32_224',
    'L/16': 'vit_large_patch16_224',
    'R+Ti/16': 'vit_tiny_r_s16_p8_224',
    'R26+S/32': 'vit_small_r26_s32_224',
    'R26+B/32': 'vit_base_r26_s32_224',
    'R50+B/16': 'vit_base_r50_s16_224',
    'R50+L/32': 'vit_large_r50_s32_224',
}
QUICK = ('Ti/16', 'R+Ti/16')


@pytest.mark.parametrize(
    'arch',
    [pytest.param(arch, marks=() if arch in QUICK else pytest.mark.nightly) for arch in TIMM],
)
def test_timm_on_shared_random_weights(arch):
    theirs = timm.create_model(TIMM[arch], num_classes=0).eval()
    randomize(theirs, std=0.02)
    state = {
        key.replace('backbone.conv.', 'backbone.stem.conv.').replace(
            'backbone.norm.', 'backbone.stem.norm.'
        ): value
        for key, value in theirs.state_dict().items()
    }
    ours = VisionTransformer(arch, numerics='timm', out_type='raw').eval()
    ours.load_state_dict(state)
    images = torch.randn(1, 3, 224, 224)
    with torch.no_grad():
        assert_same(ours(images)[0], theirs.forward_features(images))
