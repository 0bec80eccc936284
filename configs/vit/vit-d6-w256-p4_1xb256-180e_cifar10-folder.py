"""A six-block ViT from scratch on CIFAR-10 as a folder of images.

    python tools/train.py configs/vit/vit-d6-w256-p4_1xb256-180e_cifar10-folder.py

Published for this model after 180 epochs: 78.8 % top-1, and macro precision 78.6, recall 78.8 and
F1 78.2 %. Those are not ours (docs/results.md).
"""

_base_ = [
    '../_base_/models/vit-d6-w256-p4.py',
    '../_base_/datasets/cifar10-folder_bs256.py',
    '../_base_/schedules/adamw_onecycle_180e.py',
    '../_base_/default_runtime.py',
]
