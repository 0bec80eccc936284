"""Mask R-CNN with a simple feature pyramid on DINOv3-L/16 (arXiv:2508.10104), fine-tuned on COCO; 12 epochs.

    tools/dist_train.sh configs/detection/mask-rcnn_dinov3-vit-large-p16_simple-fpn_8xb2-1x_coco.py 8

Not yet trained by us.
"""

_base_ = 'mask-rcnn_dinov3-vit-base-p16_simple-fpn_8xb2-1x_coco.py'

model = dict(
    backbone=dict(arch='timm://vit_large_patch16_dinov3.lvd1689m'),
    neck=dict(in_channels=1024))
