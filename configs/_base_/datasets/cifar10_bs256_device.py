"""The same data, cropped and flipped on the training device."""

_base_ = 'cifar10_bs256.py'

data_preprocessor = dict(
    type='vit_plugin.AugmentingPreprocessor',
    augments=[
        dict(type='RandomCrop', crop_size=32, padding=4),
        dict(type='RandomFlip', prob=0.5, direction='horizontal'),
    ],
)

train_dataloader = dict(dataset=dict(pipeline=[dict(type='PackInputs')]))
