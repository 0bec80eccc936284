"""A two-block ViT on a small pooled ResNet with 10 % of CIFAR-10's labels.

    python tools/train.py configs/self_supervised/hybrid-vit-d2-w192_1xb64-100e_cifar10-folder-10pct.py

This is from scratch. `--cfg-options load_from=CHECKPOINT` begins with the backbone of a pre-training beside this file.
What is not of the backbone is left out, and said to be.

Not yet trained by us.
"""

_base_ = 'hybrid-vit-d2-w192_1xb64-100e_cifar10-folder-1pct.py'

train_dataloader = dict(dataset=dict(fraction=0.1))
