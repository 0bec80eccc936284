"""DINO (arXiv:2203.03605) on a frozen DINOv3-B/16 (arXiv:2508.10104), on COCO; 12 epochs.

tools/dist_train.sh configs/detection/dino-4scale_dinov3-vit-base-p16_8xb2-12e_coco.py 8
"""

_base_ = ['../_base_/models/dino-4scale_12e.py', '../_base_/backbones/dinov3-vit-base-p16.py']

model = dict(
    data_preprocessor=_base_.pixels,
    backbone=dict(_base_.backbone, img_size=(800, 1344), frozen_stages=12),
    neck=dict(
        _delete_=True,
        type='vit_plugin.SimpleFPN',
        in_channels=768,
        out_channels=256,
        scales=(2, 1, 0.5, 0.25),
        num_outs=4,
    ),
)
