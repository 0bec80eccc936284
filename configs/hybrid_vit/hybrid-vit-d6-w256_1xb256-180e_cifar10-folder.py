"""A six-block ViT on a small ResNet, from scratch on CIFAR-10 as a folder of images.

python tools/train.py configs/hybrid_vit/hybrid-vit-d6-w256_1xb256-180e_cifar10-folder.py
"""

_base_ = [
    '../_base_/models/hybrid-vit-d6-w256.py',
    '../_base_/datasets/cifar10-folder_bs256.py',
    '../_base_/schedules/adamw_onecycle_180e.py',
    '../_base_/default_runtime.py',
]
