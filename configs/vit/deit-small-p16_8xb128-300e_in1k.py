"""S/16 from scratch on ImageNet-1k as DeiT-S (arXiv:2012.12877, Table 9).

    tools/dist_train.sh configs/vit/deit-small-p16_8xb128-300e_in1k.py 8

Published: 79.8 % top-1 (its Table 5).
"""

_base_ = [
    '../_base_/models/vit-small-p16.py',
    '../_base_/datasets/imagenet_bs128_224px_deit.py',
    '../_base_/schedules/adamw_imagenet_300e.py',
]

model = dict(
    backbone=dict(numerics='timm', drop_path_rate=0.1),
    head=dict(loss=dict(type='LabelSmoothLoss', label_smooth_val=0.1, mode='original')),
    train_cfg=dict(augments=[dict(type='Mixup', alpha=0.8), dict(type='CutMix', alpha=1.0)]),
)
train_dataloader = dict(
    sampler=dict(_delete_=True, type='RepeatAugSampler', num_repeats=3, shuffle=True)
)
optim_wrapper = dict(optimizer=dict(weight_decay=0.05), clip_grad=None)
param_scheduler = [
    dict(type='LinearLR', start_factor=1e-3, end=5, convert_to_iter_based=True),
    dict(type='CosineAnnealingLR', begin=5, eta_min=1e-5, convert_to_iter_based=True),
]
