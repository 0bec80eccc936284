"""The same with two views: crop, color jitter, grayscale, solarisation (SimCLR, MoCo v3, DINO).

There is no blur, which has little effect at 32 pixels (arXiv:2002.05709, Appendix B.9).
"""

_base_ = 'cifar10-folder_bs256_crops.py'

colors = [
    dict(
        type='RandomApply',
        prob=0.8,
        transforms=[
            dict(type='ColorJitter', brightness=0.4, contrast=0.4, saturation=0.2, hue=0.1)
        ],
    ),
    dict(
        type='RandomGrayscale', prob=0.2, keep_channels=True, channel_weights=(0.114, 0.587, 0.299)
    ),
    dict(type='Solarize', thr=128, prob=0.1),
    dict(type='RandomFlip', prob=0.5, direction='horizontal'),
]
data_preprocessor = dict(
    views=[
        dict(
            number=2,
            augments=[
                dict(type='RandomResizedCrop', scale=32, crop_ratio_range=(0.2, 1.0)),
                *colors,
            ],
        )
    ]
)
