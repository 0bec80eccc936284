"""DINO (arXiv:2203.03605) on a frozen DINOv3-S/16 (arXiv:2508.10104), on COCO; 12 epochs.

    tools/dist_train.sh configs/detection/dino-4scale_dinov3-vit-small-p16_8xb2-12e_coco.py 8

Not yet trained by us.
"""

_base_ = 'dino-4scale_dinov3-vit-base-p16_8xb2-12e_coco.py'

model = dict(
    backbone=dict(arch='timm://vit_small_patch16_dinov3.lvd1689m', frozen_stages=12),
    neck=dict(in_channels=384))
