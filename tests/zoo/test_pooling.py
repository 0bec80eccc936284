"""The config of a name pools tokens as timm does, with timm's weights."""

import pytest
import timm
import torch
from mmengine.registry import MODELS
from torch import nn

from benchmarks.zoo import randomize
from vit_plugin.models import load_weights
from vit_plugin.zoo.catalog import catalog_config

# timm's name -> the out_type of our backbone, and the mode of our neck, if there is one.
POOLINGS = {
    'vit_base_patch16_sapiens2': ('cls_token', None),
    'vit_tiny_patch16_dinov3_qkvb': ('avg_featmap', None),
    'deit3_small_patch16_224': ('cls_token', None),
    'vit_pe_core_tiny_patch16_384': ('raw', 'map'),  # over class token and patches
    'vit_so150m_patch16_reg4_map_256': ('featmap', 'map'),  # over patches, without registers
    'vit_base_patch16_siglip_224': ('featmap', 'map'),
    'eva02_tiny_patch14_224': ('featmap', 'avg'),
    'vit_pe_spatial_tiny_patch16_512': ('avg_featmap', None),
}


@pytest.mark.parametrize('name', POOLINGS)
def test_pooled_features_equal_timms(monkeypatch, name):
    torch.manual_seed(0)
    with torch.device('meta'):
        theirs = timm.create_model(name, num_classes=0, img_size=56 if 'patch14' in name else 64)
    theirs.blocks = theirs.blocks[:1]
    randomize(theirs.to_empty(device='cpu').eval())
    for module in ('definition', 'catalog'):
        monkeypatch.setattr(f'vit_plugin.zoo.{module}.build_on_meta', lambda name: theirs)
    cfg = catalog_config(name)
    out_type, mode = POOLINGS[name]
    assert (cfg['backbone']['out_type'], cfg.get('neck', {}).get('mode')) == (out_type, mode)
    model = nn.Module()
    model.backbone = MODELS.build(cfg['backbone'])
    model.neck = MODELS.build(cfg['neck']) if mode else nn.Identity()
    report = load_weights(model.eval(), theirs.state_dict())
    assert not report.initialized
    images = torch.randn(2, 3, *model.backbone.img_size)
    theirs, model = theirs.double(), model.double()
    if getattr(theirs, 'rope', None) is not None:
        theirs.rope.float()  # ours computes its angles in float32, too
    with torch.no_grad():
        (pooled,) = model.neck(model.backbone(images.double()))
        torch.testing.assert_close(pooled, theirs(images.double()), rtol=1e-12, atol=1e-12)
