"""DINO (arXiv:2104.14294) of a six-block ViT, on CIFAR-10 without labels, with four small views.

    python tools/train.py configs/self_supervised/dino_vit-d6-w192-p4_1xb256-100e_cifar10-folder.py

The base `hybrid-vit-d2-w192-wc3.py` of backbones trains the hybrid.
"""

_base_ = [
    '../_base_/backbones/vit-d6-w192-p4.py',
    '../_base_/selfsup/dino.py',
    '../_base_/datasets/cifar10-folder_bs256_multicrop.py',
    '../_base_/schedules/adamw_selfsup_100e.py',
]

model = dict(backbone=_base_.backbone)
