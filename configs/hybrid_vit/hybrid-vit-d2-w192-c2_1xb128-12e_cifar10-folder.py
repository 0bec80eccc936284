"""A ViT of two blocks after a CNN of two stages with BatchNorm, from scratch on CIFAR-10 as a folder.

    python tools/train.py configs/hybrid_vit/hybrid-vit-d2-w192-c2_1xb128-12e_cifar10-folder.py

It learns from crops of 28 x 28 pixels, and is tested on whole images. Ours, 2026-11-25: 87.5 % top-1, one seed, in 44
minutes of one core of an Intel Xeon without AMX, in float32 (docs/results.md).
"""

_base_ = [
    '../_base_/models/hybrid-vit-d2-w192-c2.py', '../_base_/datasets/cifar10-folder_bs256.py',
    '../_base_/schedules/muon_linear_12e.py', '../_base_/default_runtime.py']

data_preprocessor = dict(augments=[
    dict(type='RandomCrop', crop_size=28),
    dict(type='RandomFlip', prob=0.5, direction='horizontal')])
train_dataloader = dict(batch_size=128)
