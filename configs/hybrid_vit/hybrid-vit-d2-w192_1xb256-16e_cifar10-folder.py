"""A ViT of two blocks on a small pooled ResNet, from scratch on CIFAR-10 as a folder of images.

    python tools/train.py configs/hybrid_vit/hybrid-vit-d2-w192_1xb256-16e_cifar10-folder.py \
        --amp --cfg-options optim_wrapper.fused_attention=False

Ours, 2026-11-22: 85.4 % top-1, mean of 3 seeds, in 50 minutes of one core of an Intel Xeon with AMX
(docs/results.md). Leave both options out on a CPU without instructions for bfloat16.
"""

_base_ = [
    '../_base_/models/hybrid-vit-d2-w192.py',
    '../_base_/datasets/cifar10-folder_bs256.py',
    '../_base_/schedules/muon_onecycle_16e.py',
    '../_base_/default_runtime.py',
]
