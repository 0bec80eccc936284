"""S/16 from scratch on ImageNet-1k: the plain baseline for 300 epochs (arXiv:2205.01580).

    tools/dist_train.sh configs/vit/vit-small-p16_8xb128-300e_in1k.py 8

Published: 80.0 % top-1 (its Table 1), and for 90 epochs, by `--cfg-options schedule_length=90
train_cfg.max_epochs=90`, 76.5 %.
"""

_base_ = [
    '../_base_/models/vit-small-p16_plain.py',
    '../_base_/datasets/imagenet_bs128_224px_randaug.py',
    '../_base_/schedules/adamw_imagenet_300e.py',
]
