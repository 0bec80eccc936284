"""DINOv2's objective (arXiv:2304.07193) for a six-block ViT, on CIFAR-10 without labels.

    vit-plugin train configs/self_supervised/dinov2_vit-d6-w192-p4_1xb256-100e_cifar10-folder.py

The base `hybrid-vit-d2-w192-wc3.py` of backbones trains the hybrid.
"""

_base_ = [
    '../_base_/backbones/vit-d6-w192-p4.py',
    '../_base_/selfsup/dinov2.py',
    '../_base_/datasets/cifar10-folder_bs256_multicrop.py',
    '../_base_/schedules/adamw_selfsup_100e.py',
]

model = dict(backbone=dict(_base_.backbone, type='vit_plugin.IBOTViT'))
