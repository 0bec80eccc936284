"""A training step and a prediction of MMDetection's models, with a sixteenth of their width."""

import pytest
import torch

pytest.importorskip('mmdet')

CONFIGS = [
    'faster_rcnn/faster-rcnn_r50_fpn_1x_coco.py',
    'retinanet/retinanet_r50_fpn_1x_coco.py',
    'mask_rcnn/mask-rcnn_r50_fpn_1x_coco.py',
    pytest.param('cascade_rcnn/cascade-rcnn_r50_fpn_1x_coco.py', marks=pytest.mark.nightly),
    'dcnv2/faster-rcnn_r50-mdconv-c3-c5_fpn_1x_coco.py',
    pytest.param(
        'deformable_detr/deformable-detr_r50_16xb2-50e_coco.py', marks=pytest.mark.nightly
    ),
    'dino/dino-4scale_r50_8xb2-12e_coco.py',
]
# Settings of configs that are widths.
WIDTHS = {
    'in_channels',
    'out_channels',
    'feat_channels',
    'conv_out_channels',
    'fc_out_channels',
    'embed_dims',
    'feedforward_channels',
    'num_feats',
    'num_groups',
}


def narrow(cfg):
    """Divide every width in a config by sixteen, in place."""
    for key, value in cfg.items():
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, dict):
                narrow(part)
        if key in WIDTHS and value:
            cfg[key] = [width // 16 for width in value] if isinstance(value, list) else value // 16


def samples(number: int, size: int) -> list:
    """Images with two boxes and masks each."""
    from mmdet.structures import DetDataSample
    from mmdet.structures.mask import BitmapMasks
    from mmengine.structures import InstanceData

    shape, samples = (size, size), []
    for _ in range(number):
        masks = torch.zeros(2, size, size, dtype=torch.uint8)
        masks[0, 5:50, 4:40] = masks[1, 10:60, 20:60] = 1
        boxes = torch.tensor([[4.0, 5, 40, 50], [20, 10, 60, 60]])
        sample = DetDataSample(
            metainfo=dict(
                img_shape=shape,
                ori_shape=shape,
                pad_shape=shape,
                scale_factor=(1.0, 1.0),
                batch_input_shape=shape,
            )
        )
        sample.gt_instances = InstanceData(
            bboxes=boxes, labels=torch.tensor([1, 2]), masks=BitmapMasks(masks.numpy(), size, size)
        )
        samples.append(sample)
    return samples


# Warnings of MMDetection.
@pytest.mark.filterwarnings(
    'ignore:The arguments `dropout` in:DeprecationWarning', 'ignore:torch.meshgrid:UserWarning'
)
@pytest.mark.parametrize('config', CONFIGS)
def test_detectors_train_and_predict(config):
    from mmdet.registry import MODELS
    from mmdet.utils import register_all_modules
    from mmengine.hub import get_config

    register_all_modules()
    cfg = get_config(f'mmdet::{config}').model
    narrow(cfg)
    cfg.backbone.update(base_channels=4, init_cfg=None, zero_init_residual=False)
    if 'num_queries' in cfg:
        cfg.num_queries = 10
        cfg.bbox_head.embed_dims = 16  # its default is not narrow
    model = MODELS.build(cfg)
    model.init_weights()  # some parameters of MMDetection are uninitialized memory before
    images, data = torch.randn(2, 3, 64, 64), samples(2, 64)

    loss, _ = model.train().parse_losses(model.loss(images, data))
    loss.backward()
    grads = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    assert all(grad.isfinite().all() for grad in grads)
    assert sum(bool(grad.any()) for grad in grads) > len(grads) / 2
    with torch.no_grad():
        predictions = model.eval().predict(images, data)
    assert all(
        {'bboxes', 'scores', 'labels'} <= set(sample.pred_instances.keys())
        for sample in predictions
    )
