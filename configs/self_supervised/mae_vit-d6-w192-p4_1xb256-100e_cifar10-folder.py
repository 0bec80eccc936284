"""MAE (arXiv:2111.06377) of a six-block ViT, on CIFAR-10 without labels.

python tools/train.py configs/self_supervised/mae_vit-d6-w192-p4_1xb256-100e_cifar10-folder.py
"""

_base_ = [
    '../_base_/backbones/vit-d6-w192-p4.py',
    '../_base_/selfsup/mae.py',
    '../_base_/datasets/cifar10-folder_bs256_crops.py',
    '../_base_/schedules/adamw_selfsup_100e.py',
]

model = dict(backbone=dict(_base_.backbone, type='vit_plugin.MAEViT', with_cls_token=True))
