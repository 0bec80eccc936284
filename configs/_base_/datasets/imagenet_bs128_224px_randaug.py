"""ImageNet-1k at 224 px for big_vision's training from scratch: crops, flips, RandAugment.

Test images are cropped at the center.

The policies of RandAugment are MMPretrain's, which differ a little from big_vision's.
"""

_base_ = 'imagenet_bs64_224px.py'

train_pipeline = [
    dict(type='vit_plugin.LoadImage'),
    dict(
        type='RandomResizedCrop', scale=224, crop_ratio_range=(0.05, 1.0), interpolation='bilinear'
    ),
    dict(type='RandomFlip', prob=0.5, direction='horizontal'),
    dict(type='RandAugment', policies='timm_increasing', num_policies=2, magnitude_level=10),
    dict(type='PackInputs'),
]
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='ResizeEdge', scale=256, edge='short', interpolation='bilinear'),
    dict(type='CenterCrop', crop_size=224),
    dict(type='PackInputs'),
]

train_dataloader = dict(
    batch_size=128,
    dataset=dict(pipeline=train_pipeline),
    sampler=dict(_delete_=True, type='vit_plugin.DefaultSampler', shuffle=True),
)
val_dataloader = dict(batch_size=128, dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
