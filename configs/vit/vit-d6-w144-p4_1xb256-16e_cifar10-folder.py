"""A ViT of six blocks, from scratch on CIFAR-10 as a folder: as many operations as hybrid-vit-d2-w192.

    python tools/train.py configs/vit/vit-d6-w144-p4_1xb256-16e_cifar10-folder.py

Not yet trained by us.
"""

_base_ = [
    '../_base_/models/vit-d6-w144-p4.py', '../_base_/datasets/cifar10-folder_bs256.py',
    '../_base_/schedules/muon_onecycle_16e.py', '../_base_/default_runtime.py']
