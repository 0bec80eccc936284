"""MMDetection's DINO and Deformable DETR without an encoder."""

import vit_plugin.detection  # noqa: F401  isort: skip  before mmdet

import pytest
import torch
from mmengine.config import ConfigDict
from mmengine.structures import InstanceData
from torch import nn

from vit_plugin.errors import ConfigError
from vit_plugin.registry import MODELS

pytest.importorskip('mmdet')
pytestmark = pytest.mark.filterwarnings('ignore')

CONFIGS = {'DecoderOnlyDINO': 'dino/dino-4scale_r50_8xb2-12e_coco.py',
           'DecoderOnlyDeformableDETR': 'deformable_detr/deformable-detr_r50_16xb2-50e_coco.py'}
SIZE, WIDTH = (64, 96), 32


def detector(kind: str, num_layers: int = 0, num_queries: int = 10) -> nn.Module:
    """MMDetection's own config, narrow, on three maps of a small ViT."""
    from mmdet.utils import register_all_modules
    from mmengine.hub import get_config
    register_all_modules()
    whole = get_config(f'mmdet::{CONFIGS[kind]}')
    whole.merge_from_dict({f'model.{name}': value for name, value in {
        'type': f'vit_plugin.{kind}', 'encoder.num_layers': num_layers, 'num_queries': num_queries,
        'num_feature_levels': 3, 'test_cfg.max_per_img': 5, 'bbox_head.num_classes': 3, 'bbox_head.embed_dims': WIDTH,
        'positional_encoding.num_feats': WIDTH // 2, 'decoder.num_layers': 2,
        'encoder.layer_cfg.self_attn_cfg': dict(embed_dims=WIDTH, num_levels=3),
        'encoder.layer_cfg.ffn_cfg': dict(embed_dims=WIDTH, feedforward_channels=WIDTH),
        'decoder.layer_cfg.self_attn_cfg': dict(embed_dims=WIDTH),
        'decoder.layer_cfg.cross_attn_cfg': dict(embed_dims=WIDTH, num_levels=3),
        'decoder.layer_cfg.ffn_cfg': dict(embed_dims=WIDTH, feedforward_channels=WIDTH)}.items()})
    cfg = whole.model
    cfg.backbone = ConfigDict(
        type='vit_plugin.SpatialTuningViT', img_size=SIZE, norm_cfg=dict(type='BN'), out_channels=WIDTH,
        arch=dict(embed_dims=16, num_layers=3, num_heads=2, feedforward_channels=32, patch_size=16))
    cfg.neck = None
    model = MODELS.build(cfg)
    model.init_weights()
    return model


def batch() -> tuple[torch.Tensor, list]:
    from mmdet.structures import DetDataSample
    sample = DetDataSample(metainfo=dict(
        img_shape=SIZE, ori_shape=SIZE, pad_shape=SIZE, batch_input_shape=SIZE, scale_factor=(1., 1.)))
    sample.gt_instances = InstanceData(bboxes=torch.tensor([[4., 5, 40, 50], [20, 10, 60, 60]]),
                                       labels=torch.tensor([1, 2]))
    return torch.randn(1, 3, *SIZE), [sample]


@pytest.mark.parametrize('kind', CONFIGS)
def test_a_step_and_a_prediction(kind):
    model, (images, samples) = detector(kind).train(), batch()
    losses, _ = model.parse_losses(model.loss(images, samples))
    losses.backward()
    silent = [name for name, value in model.named_parameters() if value.requires_grad and value.grad is None]
    assert not silent  # DDP would wait for it
    assert not model.level_embed.requires_grad
    with torch.no_grad():
        found = model.eval().predict(images, samples)[0].pred_instances
    assert {'bboxes', 'scores', 'labels'} <= set(found.keys())


def test_what_has_no_place_is_a_sentence():
    with pytest.raises(ConfigError, match=r'encoder.num_layers=6 must be 0'):
        detector('DecoderOnlyDINO', num_layers=6)
    model, (images, samples) = detector('DecoderOnlyDINO', num_queries=900), batch()
    with pytest.raises(ConfigError, match='num_queries=900 is more than the 126 positions'):
        model.eval().predict(images, samples)
