"""Faster R-CNN on DINOv3's ConvNeXt-T (arXiv:2508.10104), on COCO; 12 epochs.

tools/dist_train.sh configs/detection/faster-rcnn_dinov3-convnext-tiny_fpn_8xb2-1x_coco.py 8
"""

_base_ = [
    'mmdet::_base_/models/faster-rcnn_r50_fpn.py',
    'mmdet::_base_/datasets/coco_detection.py',
    '../_base_/backbones/dinov3-convnext-tiny.py',
    '../_base_/schedules/adamw_1x.py',
]

model = dict(
    data_preprocessor=_base_.pixels,
    backbone=_base_.backbone,
    neck=dict(in_channels=[96, 192, 384, 768]),
)
