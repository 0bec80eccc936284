"""A six-block ViT on CIFAR-10 as a folder that learns the classes of a CNN (arXiv:1503.02531).

    vit-plugin train configs/hybrid_vit/hybrid-vit-d2-w192-wc3_1xb500-15e_cifar10-folder.py \
        --work-dir work_dirs/cnn --cfg-options model.backbone.arch.num_layers=0 \
        train_cfg.max_epochs=18
    vit-plugin train configs/distillation/vit-d6-w144-p4_logits_1xb256-16e_cifar10-folder.py

The first line trains the teacher; model.teacher=RUN names another. Ours, 2026-11-26, seed 0, with
train_cfg.max_epochs=13, in the time of 16 without a teacher: 79.3 % top-1
(docs/self_supervised.md).
"""

_base_ = ['../vit/vit-d6-w144-p4_1xb256-16e_cifar10-folder.py', '../_base_/distillation/logits.py']

model = _base_.distillation
