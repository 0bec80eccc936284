"""DPT (arXiv:2103.13413) on DINOv3-B/16 for depth in meters, on NYU, for 40k iterations.

The data is laid out as MMSegmentation's `NYUDataset` says: 16-bit PNG in millimeters. Nobody has
run it yet.

    tools/dist_train.sh configs/segmentation/dinov3-vit-base-p16_dpt_8xb2-40k_nyu-480x480.py 8
"""

_base_ = [
    '../_base_/models/dpt_depth.py',
    'mmseg::_base_/datasets/nyu.py',
    '../_base_/backbones/dinov3-vit-base-p16.py',
    '../_base_/schedules/adamw_linear_40k.py',
]

model = dict(
    data_preprocessor=_base_.pixels,
    backbone=dict(_base_.backbone, img_size=480, out_indices=(2, 5, 8, 11)),
)
optim_wrapper = dict(
    optimizer=dict(lr=1e-4),
    constructor='vit_plugin.LayerDecayOptimWrapperConstructor',
    paramwise_cfg=dict(layer_decay_rate=0.8, flat_decay_mult=0.0),
)

load = dict(type='vit_plugin.LoadDepthAnnotations', scale=0.001, max_depth=10.0)
train_pipeline = [
    dict(type='LoadImageFromFile'),
    load,
    dict(type='RandomCrop', crop_size=(480, 480)),
    dict(type='RandomFlip', prob=0.5),
    dict(type='PhotoMetricDistortion'),
    dict(type='PackSegInputs'),
]
test_pipeline = [dict(type='LoadImageFromFile'), load, dict(type='PackSegInputs')]
train_dataloader = dict(batch_size=2, dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
val_evaluator = dict(
    _delete_=True, type='vit_plugin.DepthMetric', max_depth_eval=10.0, crop_type='nyu_crop'
)
test_evaluator = val_evaluator
default_hooks = dict(checkpoint=dict(save_best='delta1', rule='greater'))
