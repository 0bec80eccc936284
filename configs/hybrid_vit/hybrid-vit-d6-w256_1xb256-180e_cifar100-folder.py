"""A six-block ViT on a small ResNet, from scratch on CIFAR-100 as a folder of images, with macro F1.

    python tools/train.py configs/hybrid_vit/hybrid-vit-d6-w256_1xb256-180e_cifar100-folder.py

Not yet trained by us.
"""

_base_ = [
    '../_base_/models/hybrid-vit-d6-w256.py', '../_base_/datasets/cifar100-folder_bs256.py',
    '../_base_/schedules/adamw_onecycle_180e.py', '../_base_/default_runtime.py']

model = dict(head=dict(num_classes=100))
