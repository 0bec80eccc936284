"""A two-block hybrid on CIFAR-10 as a folder that learns the classes of its CNN (arXiv:1503.02531).

    vit-plugin train configs/hybrid_vit/hybrid-vit-d2-w192-wc3_1xb500-15e_cifar10-folder.py \
        --work-dir work_dirs/cnn --cfg-options model.backbone.arch.num_layers=0 \
        train_cfg.max_epochs=18
    vit-plugin train \
        configs/distillation/hybrid-vit-d2-w192-wc3_logits_1xb500-15e_cifar10-folder.py

The first line trains the teacher; model.teacher=RUN names another. Ours, 2026-11-27, seed 0, with
train_cfg.max_epochs=11, in the time of 15 without a teacher: 89.1 % top-1, and 90.1 % averaged over
six views (docs/self_supervised.md).
"""

_base_ = [
    '../hybrid_vit/hybrid-vit-d2-w192-wc3_1xb500-15e_cifar10-folder.py',
    '../_base_/distillation/logits.py',
]

model = _base_.distillation
