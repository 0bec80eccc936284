"""A six-block ViT from scratch on CIFAR-10 as a folder: about the compute of hybrid-vit-d2-w192.

    python tools/train.py configs/vit/vit-d6-w144-p4_1xb256-16e_cifar10-folder.py \
        --amp --cfg-options optim_wrapper.fused_attention=False

Ours, 2026-11-22: 79.2 % top-1, mean of 3 seeds, in an hour of one core of an Intel Xeon with AMX
(docs/results.md). Leave both options out on a CPU without instructions for bfloat16.
"""

_base_ = [
    '../_base_/models/vit-d6-w144-p4.py',
    '../_base_/datasets/cifar10-folder_bs256.py',
    '../_base_/schedules/muon_onecycle_16e.py',
    '../_base_/default_runtime.py',
]
