"""S/16 from scratch on ImageNet-1k as DeiT-III-S (arXiv:2204.07118, Table 1).

Other settings follow the authors' command.

    tools/dist_train.sh configs/vit/deit3-small-p16_8xb256-800e_in1k.py 8

Published: 81.4 % top-1.
"""

_base_ = [
    '../_base_/models/vit-small-p16.py',
    '../_base_/datasets/imagenet_bs256_224px_3augment.py',
    '../_base_/schedules/adamw_imagenet_300e.py',
]

model = dict(
    backbone=dict(
        numerics='timm',
        pos_embed=dict(type='learned', prefix_rows=False),
        drop_path_rate=0.05,
        encoder=dict(layer_scale_init_value=1e-4),
    ),
    # Mean of the classes.
    head=dict(loss=dict(type='CrossEntropyLoss', use_sigmoid=True, loss_weight=1e-3)),
    train_cfg=dict(augments=[dict(type='Mixup', alpha=0.8), dict(type='CutMix', alpha=1.0)]),
)
train_dataloader = dict(
    sampler=dict(_delete_=True, type='RepeatAugSampler', num_repeats=3, shuffle=True)
)
optim_wrapper = dict(optimizer=dict(_delete_=True, type='Lamb', lr=4e-3, weight_decay=0.05))
param_scheduler = [
    dict(type='LinearLR', start_factor=2.5e-4, end=5, convert_to_iter_based=True),
    dict(type='CosineAnnealingLR', begin=5, eta_min=1e-5, convert_to_iter_based=True),
]
schedule_length = 800
train_cfg = dict(max_epochs=800)
auto_scale_lr = dict(base_batch_size=2048)
