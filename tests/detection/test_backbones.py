"""Our backbones in a detector, on batches of images of different sizes."""

import pytest
import torch
from model_states import assert_all_learn
from tiny_models import TINY_SIZES

pytest.importorskip('mmdet')

# Backbones and their necks.
BACKBONES = {
    'hybrid': (
        dict(
            arch=dict(TINY_SIZES, patch_size=2, resnet=dict(stage_depths=(1, 1), width=32)),
            out_type='pyramid',
        ),
        dict(type='FPN', in_channels=[128, 256, 32], out_channels=16, num_outs=5),
    ),
    'windows': (
        dict(
            arch=dict(TINY_SIZES, patch_size=16),
            with_cls_token=False,
            out_type='featmap',
            pos_embed=dict(type='learned', relative=True),
            encoder=dict(window=dict(size=3, global_blocks=(1,))),
        ),
        dict(type='vit_plugin.SimpleFPN', in_channels=32, out_channels=16, num_outs=5),
    ),
}


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('name', BACKBONES)
@pytest.mark.parametrize(
    'sizes',
    [[(64, 96), (80, 48), (33, 70), (96, 96)], [(333, 800)]],
    ids=['four sizes', '333 x 800'],
)
def test_a_detector_trains_on_images_of_different_sizes(name, sizes):
    from mmdet.registry import MODELS
    from mmdet.testing import demo_mm_inputs
    from mmdet.utils import register_all_modules
    from mmengine.hub import get_config

    register_all_modules()
    cfg = get_config('mmdet::retinanet/retinanet_r50_fpn_1x_coco.py').model
    backbone, neck = BACKBONES[name]
    cfg.backbone = dict(type='vit_plugin.VisionTransformer', img_size=64, **backbone)
    cfg.neck = neck
    cfg.bbox_head.update(num_classes=3, in_channels=16, feat_channels=16, stacked_convs=1)
    cfg.bbox_head.anchor_generator.strides = [4, 8, 16, 32, 64]
    model = MODELS.build(cfg).train()
    batch = demo_mm_inputs(
        len(sizes), [(3, *size) for size in sizes], num_items=[2] * len(sizes), num_classes=3
    )
    data = model.data_preprocessor(batch, True)
    loss, _ = model.parse_losses(model(**data, mode='loss'))
    loss.backward()
    assert torch.isfinite(loss)
    assert_all_learn(model)  # DDP raises for unused parameters
    with torch.no_grad():
        predictions = model.eval().test_step(batch)
    assert [sample.img_shape for sample in predictions] == sizes
