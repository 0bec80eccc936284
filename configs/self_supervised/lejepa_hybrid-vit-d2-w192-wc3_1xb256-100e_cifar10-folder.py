"""LeJEPA (arXiv:2511.08544) of a two-block ViT after a three-stage CNN, on CIFAR-10 without labels.

    vit-plugin train \
        configs/self_supervised/lejepa_hybrid-vit-d2-w192-wc3_1xb256-100e_cifar10-folder.py
"""

_base_ = [
    '../_base_/backbones/hybrid-vit-d2-w192-wc3.py',
    '../_base_/selfsup/lejepa.py',
    '../_base_/datasets/cifar10-folder_bs256_views.py',
    '../_base_/schedules/muon_selfsup_100e.py',
]

model = dict(backbone=_base_.backbone)
