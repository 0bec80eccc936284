"""UPerNet on four depths of DINOv3-S/16 (arXiv:2508.10104), fine-tuned on ADE20K; 160k iterations.

    tools/dist_train.sh configs/segmentation/dinov3-vit-small-p16_upernet_8xb2-160k_ade20k-512x512.py 8

Not yet trained by us.
"""

_base_ = 'dinov3-vit-base-p16_upernet_8xb2-160k_ade20k-512x512.py'

model = dict(
    backbone=dict(arch='timm://vit_small_patch16_dinov3.lvd1689m', out_indices=(2, 5, 8, 11)),
    neck=dict(in_channels=[384] * 4, out_channels=384),
    decode_head=dict(in_channels=[384] * 4),
    auxiliary_head=dict(in_channels=384))
