"""Mask R-CNN on ViT-Adapter-B/16's pyramid (arXiv:2205.08534, Section 4.1), on COCO; 12 epochs.

tools/dist_train.sh configs/detection/mask-rcnn_vit-adapter-base-p16_fpn_8xb2-1x_coco.py 8
"""

_base_ = [
    'mmdet::_base_/models/mask-rcnn_r50_fpn.py',
    'mmdet::_base_/datasets/coco_instance.py',
    '../_base_/backbones/vit-adapter-base-p16.py',
    '../_base_/schedules/adamw_1x.py',
]

model = dict(
    data_preprocessor=_base_.pixels,
    backbone=dict(
        _base_.backbone,
        backbone=dict(
            _base_.backbone.backbone,
            img_size=(800, 1344),
            encoder=dict(window=dict(size=14, global_blocks=(2, 5, 8, 11))),
        ),
    ),
    neck=dict(in_channels=[768, 768, 768, 768]),
)
