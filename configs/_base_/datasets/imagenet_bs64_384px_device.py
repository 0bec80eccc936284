"""The same data, flipped on the training device, and decoded no finer than the crop needs."""

_base_ = 'imagenet_bs64_384px.py'

data_preprocessor = dict(
    type='vit_plugin.AugmentingPreprocessor',
    augments=[dict(type='RandomFlip', prob=0.5, direction='horizontal')],
)

train_pipeline = [
    dict(
        type='vit_plugin.LoadRandomResizedCrop',
        scale=384,
        crop_ratio_range=(0.05, 1.0),
        interpolation='bilinear',
    ),
    dict(type='PackInputs'),
]
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
