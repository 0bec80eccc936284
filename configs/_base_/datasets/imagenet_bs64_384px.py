"""ImageNet-1k at 384 px for the authors' fine-tuning: crops of 5 to 100 % of the area, flips.

Test images are resized whole.
"""

data_preprocessor = dict(num_classes=1000, mean=[127.5] * 3, std=[127.5] * 3, to_rgb=True)

train_pipeline = [
    dict(type='vit_plugin.LoadImage'),
    dict(
        type='RandomResizedCrop', scale=384, crop_ratio_range=(0.05, 1.0), interpolation='bilinear'
    ),
    dict(type='RandomFlip', prob=0.5, direction='horizontal'),
    dict(type='PackInputs'),
]
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='Resize', scale=(384, 384), interpolation='bilinear'),
    dict(type='PackInputs'),
]

train_dataloader = dict(
    batch_size=64,
    num_workers=8,
    dataset=dict(
        type='ImageNet', data_root='data/imagenet', split='train', pipeline=train_pipeline
    ),
    sampler=dict(type='vit_plugin.InfiniteSampler', shuffle=True),
)
val_dataloader = dict(
    batch_size=64,
    num_workers=8,
    dataset=dict(type='ImageNet', data_root='data/imagenet', split='val', pipeline=test_pipeline),
    sampler=dict(type='DefaultSampler', shuffle=False),
)
val_evaluator = dict(type='Accuracy', topk=(1, 5))

test_dataloader = val_dataloader
test_evaluator = val_evaluator
