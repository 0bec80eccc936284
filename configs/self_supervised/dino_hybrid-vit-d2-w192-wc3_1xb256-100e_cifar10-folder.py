"""DINO (arXiv:2104.14294) of a two-block ViT after a three-stage CNN, on CIFAR-10 without labels.

It has four small views.

    python tools/train.py \
        configs/self_supervised/dino_hybrid-vit-d2-w192-wc3_1xb256-100e_cifar10-folder.py

Not yet trained by us.
"""

_base_ = [
    '../_base_/backbones/hybrid-vit-d2-w192-wc3.py',
    '../_base_/selfsup/dino.py',
    '../_base_/datasets/cifar10-folder_bs256_multicrop.py',
    '../_base_/schedules/adamw_selfsup_100e.py',
]

model = dict(backbone=_base_.backbone)
