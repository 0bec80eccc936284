"""ImageNet-1k without labels: two large and ten small views per image, as in DINO.

The views follow arXiv:2104.14294.
"""

_base_ = 'mmpretrain::_base_/datasets/imagenet_bs512_mocov3.py'

colors = [
    dict(type='RandomFlip', prob=0.5),
    dict(
        type='RandomApply',
        prob=0.8,
        transforms=[
            dict(type='ColorJitter', brightness=0.4, contrast=0.4, saturation=0.2, hue=0.1)
        ],
    ),
    dict(
        type='RandomGrayscale', prob=0.2, keep_channels=True, channel_weights=(0.114, 0.587, 0.2989)
    ),
]
large = dict(
    type='RandomResizedCrop',
    scale=224,
    crop_ratio_range=(0.4, 1.0),
    backend='pillow',
    interpolation='bicubic',
)
blur = dict(type='GaussianBlur', magnitude_range=(0.1, 2.0), magnitude_std='inf')
first = [large, *colors, dict(blur, prob=1.0)]
second = [large, *colors, dict(blur, prob=0.1), dict(type='Solarize', thr=128, prob=0.2)]
small = [dict(large, scale=96, crop_ratio_range=(0.05, 0.4)), *colors, dict(blur, prob=0.5)]

train_dataloader = dict(
    batch_size=64,
    dataset=dict(
        pipeline=[
            dict(type='vit_plugin.LoadImage'),
            dict(type='MultiView', num_views=[1, 1, 10], transforms=[first, second, small]),
            dict(type='PackInputs'),
        ]
    ),
)
