"""The same at 224 px."""

_base_ = 'imagenet_bs64_384px.py'

train_pipeline = [
    dict(type='vit_plugin.LoadImage'),
    dict(
        type='RandomResizedCrop', scale=224, crop_ratio_range=(0.05, 1.0), interpolation='bilinear'
    ),
    dict(type='RandomFlip', prob=0.5, direction='horizontal'),
    dict(type='PackInputs'),
]
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='Resize', scale=(224, 224), interpolation='bilinear'),
    dict(type='PackInputs'),
]

train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
