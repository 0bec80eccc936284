"""ImageNet-1k at 224 px as in DeiT-III: crops, flips, one of three augmentations, color jitter."""

_base_ = 'imagenet_bs128_224px_deit.py'

train_pipeline = [
    dict(type='vit_plugin.LoadImage'),
    dict(type='RandomResizedCrop', scale=224, backend='pillow', interpolation='bicubic'),
    dict(type='RandomFlip', prob=0.5, direction='horizontal'),
    dict(
        type='RandomChoice',
        transforms=[
            [
                dict(
                    type='RandomGrayscale',
                    prob=1.0,
                    keep_channels=True,
                    channel_weights=(0.114, 0.587, 0.299),
                )
            ],
            [dict(type='Solarize', thr=128, prob=1.0)],
            [dict(type='GaussianBlur', magnitude_range=(0.1, 2.0), magnitude_std='inf', prob=1.0)],
        ],
    ),
    dict(type='ColorJitter', brightness=0.3, contrast=0.3, saturation=0.3),
    dict(type='PackInputs'),
]

train_dataloader = dict(batch_size=256, dataset=dict(pipeline=train_pipeline))
