"""The same with AugReg's stronger RandAugment, and batches of 512."""

_base_ = 'imagenet_bs128_224px_randaug.py'

train_pipeline = [
    dict(type='vit_plugin.LoadImage'),
    dict(
        type='RandomResizedCrop', scale=224, crop_ratio_range=(0.05, 1.0), interpolation='bilinear'
    ),
    dict(type='RandomFlip', prob=0.5, direction='horizontal'),
    dict(type='RandAugment', policies='timm_increasing', num_policies=2, magnitude_level=15),
    dict(type='PackInputs'),
]

train_dataloader = dict(batch_size=512, dataset=dict(pipeline=train_pipeline))
