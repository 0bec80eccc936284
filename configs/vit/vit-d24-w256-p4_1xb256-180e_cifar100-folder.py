"""A 24-block ViT from scratch on CIFAR-100 as a folder, with macro precision, recall and F1.

    python tools/train.py configs/vit/vit-d24-w256-p4_1xb256-180e_cifar100-folder.py

Published for this model: 49.8 % top-1, and macro precision 46.9, recall 46.2 and F1 43.2 %. Those
are not ours (docs/results.md).
"""

_base_ = [
    '../_base_/models/vit-d6-w256-p4.py',
    '../_base_/datasets/cifar100-folder_bs256.py',
    '../_base_/schedules/adamw_onecycle_180e.py',
    '../_base_/default_runtime.py',
]

model = dict(backbone=dict(arch=dict(num_layers=24), drop_rate=0.1), head=dict(num_classes=100))
optim_wrapper = dict(optimizer=dict(lr=1e-3))
param_scheduler = dict(eta_max=1e-3)
