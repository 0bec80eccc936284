"""ECDet-S (arXiv:2603.18739) on COCO; 12 epochs.

It has 9.9 million parameters.

    tools/dist_train.sh configs/detection/ecdet-s_ecvit-t_8xb2-12e_coco.py 8

The authors train for 74 epochs with mosaic and mixup, from a distilled ECViT-T, and state 51.7 AP.
Not yet trained by us.
"""

_base_ = '../_base_/models/dino-4scale_12e.py'

size = (640, 640)
dims = 192
model = dict(
    _delete_=True,
    type='SingleStageDetector',
    data_preprocessor=dict(
        type='DetDataPreprocessor',
        mean=[123.675, 116.28, 103.53],
        std=[58.395, 57.12, 57.375],
        bgr_to_rgb=True,
    ),
    backbone=dict(type='vit_plugin.ECViT', arch='ECViT-T'),
    neck=dict(
        type='vit_plugin.HybridEncoder',
        in_channels=[dims] * 3,
        out_channels=dims,
        kind='split',
        depth=0.67,
        expansion=0.34,
        feedforward_channels=512,
        attention_act='SiLU',
        projects=False,
    ),
    bbox_head=dict(
        type='vit_plugin.DFINEHead',
        num_classes=80,
        num_queries=300,
        in_channels=[dims] * 3,
        embed_dims=dims,
        variant='ecdet',
        decoder=dict(num_layers=4, num_points=(3, 6, 3), feedforward_channels=512),
        loss_cls=dict(type='vit_plugin.MatchabilityAwareLoss'),
    ),
    test_cfg=dict(max_per_img=300),
)

train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations', with_bbox=True),
    dict(type='RandomFlip', prob=0.5),
    dict(type='PhotoMetricDistortion'),
    dict(type='Resize', scale=size, keep_ratio=False),
    dict(type='PackDetInputs'),
]
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='Resize', scale=size, keep_ratio=False),
    dict(type='LoadAnnotations', with_bbox=True),
    dict(
        type='PackDetInputs',
        meta_keys=('img_id', 'img_path', 'ori_shape', 'img_shape', 'scale_factor'),
    ),
]
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader

optim_wrapper = dict(
    _delete_=True,
    type='vit_plugin.AmpOptimWrapper',
    optimizer=dict(type='AdamW', lr=5e-4, weight_decay=1e-4),
    clip_grad=dict(max_norm=0.1),
    paramwise_cfg=dict(
        norm_decay_mult=0.0, bias_decay_mult=0.0, custom_keys=dict(backbone=dict(lr_mult=0.05))
    ),
)
custom_hooks = [
    dict(type='vit_plugin.ReportHook'),
    dict(type='vit_plugin.EMAHook', momentum=0.0001),
]
