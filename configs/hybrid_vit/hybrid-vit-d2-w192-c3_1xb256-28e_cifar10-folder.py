r"""A ViT of two blocks after a CNN of three stages with BatchNorm, from scratch on CIFAR-10 as a folder.

    python tools/train.py configs/hybrid_vit/hybrid-vit-d2-w192-c3_1xb256-28e_cifar10-folder.py \
        --amp --cfg-options optim_wrapper.fused_attention=False

Ours, 2026-11-24: 88.3 % top-1, mean of 2 seeds, in 48 minutes of one core of an Intel Xeon with AMX (docs/results.md).
"""

_base_ = [
    '../_base_/models/hybrid-vit-d2-w192-c3.py', '../_base_/datasets/cifar10-folder_bs256.py',
    '../_base_/schedules/muon_onecycle_16e.py', '../_base_/default_runtime.py']

data_preprocessor = dict(augments=[
    dict(type='RandomCrop', crop_size=32, padding=4, padding_mode='reflect'),
    dict(type='RandomFlip', prob=0.5, direction='horizontal')])
train_cfg = dict(max_epochs=28, val_interval=4)
schedule_length = 28
