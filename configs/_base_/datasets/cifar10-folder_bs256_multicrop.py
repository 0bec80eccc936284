"""The same with four small views of 16 x 16 pixels besides, as DINO has them."""

_base_ = 'cifar10-folder_bs256_views.py'

data_preprocessor = dict(
    views=[
        dict(
            number=2,
            augments=[
                dict(type='RandomResizedCrop', scale=32, crop_ratio_range=(0.4, 1.0)),
                *_base_.colors,
            ],
        ),
        dict(
            number=4,
            augments=[
                dict(type='RandomResizedCrop', scale=16, crop_ratio_range=(0.1, 0.4)),
                *_base_.colors,
            ],
        ),
    ]
)
