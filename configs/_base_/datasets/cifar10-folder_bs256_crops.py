"""CIFAR-10 as an unlabeled folder of images: one view each, cropped and flipped on the device."""

data_preprocessor = dict(
    type='vit_plugin.MultiViewPreprocessor',
    mean=[125.307, 122.961, 113.8575],
    std=[51.5865, 50.847, 51.255],
    to_rgb=True,  # files are read as BGR
    views=[
        dict(
            augments=[
                dict(type='RandomResizedCrop', scale=32, crop_ratio_range=(0.5, 1.0)),
                dict(type='RandomFlip', prob=0.5, direction='horizontal'),
            ]
        )
    ],
)

train_pipeline = [dict(type='vit_plugin.LoadCachedImage'), dict(type='PackInputs')]
train_dataloader = dict(
    batch_size=256,
    num_workers=1,
    persistent_workers=True,
    drop_last=True,
    dataset=dict(
        type='CustomDataset',
        data_root='data/cifar10-jpeg',
        data_prefix='train',
        with_label=True,
        pipeline=train_pipeline,
    ),
    sampler=dict(type='vit_plugin.DefaultSampler', shuffle=True),
)
