"""A linear head on the frozen map of DINOv3-S/16 (arXiv:2508.10104, Section 6), on ADE20K; 40k iterations.

    tools/dist_train.sh configs/segmentation/dinov3-vit-small-p16_linear_8xb2-40k_ade20k-512x512.py 8

Not yet trained by us.
"""

_base_ = 'dinov3-vit-base-p16_linear_8xb2-40k_ade20k-512x512.py'

model = dict(
    backbone=dict(arch='timm://vit_small_patch16_dinov3.lvd1689m', frozen_stages=12),
    decode_head=dict(in_channels=384, channels=384))
