"""A six-block ViT with 10 % of CIFAR-10's labels.

    python tools/train.py configs/self_supervised/vit-d6-w192-p4_1xb64-100e_cifar10-folder-10pct.py

This is from scratch. `--cfg-options load_from=CHECKPOINT` begins with the backbone of a
pre-training beside this file. What is not of the backbone is left out, and said to be.

Not yet trained by us.
"""

_base_ = 'vit-d6-w192-p4_1xb64-100e_cifar10-folder-1pct.py'

train_dataloader = dict(dataset=dict(fraction=0.1))
