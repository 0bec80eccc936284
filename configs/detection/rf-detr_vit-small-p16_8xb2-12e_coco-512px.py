"""RF-DETR-S (arXiv:2511.09554) on COCO; 12 epochs.

It has 32.1 million parameters in training and 28.5 million in prediction.

    tools/dist_train.sh configs/detection/rf-detr_vit-small-p16_8xb2-12e_coco-512px.py 8

N has ``decoder=dict(num_layers=2)`` and 384 px, M ``num_layers=4`` and 576 px. The authors start
from DINOv2 and train for longer. Not yet trained by us.
"""

_base_ = '../_base_/models/dino-4scale_12e.py'

size = (512, 512)
model = dict(
    _delete_=True,
    type='SingleStageDetector',
    data_preprocessor=dict(
        type='DetDataPreprocessor',
        mean=[123.675, 116.28, 103.53],
        std=[58.395, 57.12, 57.375],
        bgr_to_rgb=True,
    ),
    backbone=dict(
        type='vit_plugin.WindowedViT',
        arch='S/16',
        img_size=size,
        numerics='timm',
        out_indices=(2, 5, 8, 11),
        encoder=dict(window=dict(number=2, global_blocks=(3, 6, 9)), layer_scale_init_value=1.0),
    ),
    neck=dict(
        type='vit_plugin.C2fProjector', in_channels=[384] * 4, norm_cfg=dict(type='LN2d', eps=1e-6)
    ),
    bbox_head=dict(
        type='vit_plugin.LWDETRHead', num_classes=80, num_queries=300, decoder=dict(num_points=2)
    ),
    test_cfg=dict(max_per_img=300),
)

train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations', with_bbox=True),
    dict(type='RandomFlip', prob=0.5),
    dict(
        type='RandomChoice',
        transforms=[
            [dict(type='Resize', scale=size, keep_ratio=False)],
            [
                dict(
                    type='RandomChoiceResize',
                    scales=[(400, 4200), (500, 4200), (600, 4200)],
                    keep_ratio=True,
                ),
                dict(
                    type='RandomCrop',
                    crop_type='absolute_range',
                    crop_size=(384, 600),
                    allow_negative_crop=True,
                ),
                dict(type='Resize', scale=size, keep_ratio=False),
            ],
        ],
    ),
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
    optimizer=dict(type='AdamW', lr=1e-4, weight_decay=1e-4),
    clip_grad=dict(max_norm=0.1),
    constructor='vit_plugin.LayerDecayOptimWrapperConstructor',
    paramwise_cfg=dict(layer_decay_rate=0.8),
)
custom_hooks = [
    dict(type='vit_plugin.ReportHook'),
    dict(type='vit_plugin.EMAHook', momentum=0.0003),
]
