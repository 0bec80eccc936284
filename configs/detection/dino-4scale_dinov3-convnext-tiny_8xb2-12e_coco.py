"""DINO (arXiv:2203.03605) on DINOv3's ConvNeXt-T (arXiv:2508.10104), on COCO; 12 epochs.

tools/dist_train.sh configs/detection/dino-4scale_dinov3-convnext-tiny_8xb2-12e_coco.py 8
"""

_base_ = ['../_base_/models/dino-4scale_12e.py', '../_base_/backbones/dinov3-convnext-tiny.py']

model = dict(
    data_preprocessor=_base_.pixels,
    backbone=dict(_base_.backbone, out_type='featmap', out_indices=(1, 2, 3)),
    neck=dict(in_channels=[192, 384, 768]),
)
