"""A six-block ViT that learns the features of another model on CIFAR-10, without labels.

    vit-plugin train \
        configs/distillation/vit-d6-w192-p4_features_1xb256-100e_cifar10-folder.py \
        --cfg-options model.teacher=RUN

The vector of an image and its patches are compared as in RADIO (arXiv:2312.06709), and its
similarities to other images as in SEED (arXiv:2101.04731). The teacher is any run, checkpoint or
timm://NAME. Ours, 2026-11-27, seed 0, five epochs with the CNN that the other recipes here train:
1 % of the labels then give 48.5 % top-1, and 37.6 % from scratch (docs/self_supervised.md).
"""

_base_ = [
    '../_base_/backbones/vit-d6-w192-p4.py',
    '../_base_/datasets/cifar10-folder_bs256_crops.py',
    '../_base_/schedules/adamw_selfsup_100e.py',
]

model = dict(
    type='vit_plugin.Distiller',
    teacher='timm://vit_small_patch16_dinov3.lvd1689m',
    backbone=_base_.backbone,
    losses=[
        dict(type='vit_plugin.VectorDistillation', distance='cosine'),
        dict(type='vit_plugin.MapDistillation', distance='cosine'),
        dict(type='vit_plugin.SimilarityDistillation'),
    ],
)
