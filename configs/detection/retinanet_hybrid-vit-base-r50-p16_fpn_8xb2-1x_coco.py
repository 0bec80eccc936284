"""RetinaNet on the pyramid of R50+B/16, on COCO; 12 epochs.

tools/dist_train.sh configs/detection/retinanet_hybrid-vit-base-r50-p16_fpn_8xb2-1x_coco.py 8
"""

_base_ = [
    'mmdet::_base_/models/retinanet_r50_fpn.py',
    'mmdet::_base_/datasets/coco_detection.py',
    '../_base_/backbones/hybrid-vit-base-r50-p16.py',
    '../_base_/schedules/adamw_1x.py',
]

model = dict(
    data_preprocessor=_base_.pixels,
    backbone=dict(
        _base_.backbone,
        img_size=(800, 1344),
        encoder=dict(window=dict(size=14, global_blocks=(2, 5, 8, 11))),
    ),
    neck=dict(in_channels=[256, 512, 768]),
)
