"""A ViT of two blocks on a small pooled ResNet, from scratch on CIFAR-100 as a folder of images.

    python tools/train.py configs/hybrid_vit/hybrid-vit-d2-w192_1xb256-16e_cifar100-folder.py

Not yet trained by us.
"""

_base_ = [
    '../_base_/models/hybrid-vit-d2-w192.py', '../_base_/datasets/cifar100-folder_bs256.py',
    '../_base_/schedules/muon_onecycle_16e.py', '../_base_/default_runtime.py']

model = dict(head=dict(num_classes=100))
