"""CIFAR-10 as an image folder, data/cifar10-jpeg/{train,val}/<class>/*.jpg; random crop, flip."""

_base_ = 'cifar10_bs256_device.py'

data_preprocessor = dict(to_rgb=True)  # files are read as BGR

# One worker keeps all images in memory, and has nothing else to do.
train_pipeline = [dict(type='vit_plugin.LoadCachedImage'), dict(type='PackInputs')]
test_pipeline = [dict(type='LoadImageFromFile'), dict(type='PackInputs')]
tta_pipeline = [dict(type='LoadImageFromFile'), *_base_.tta_pipeline]

train_dataloader = dict(
    num_workers=1,
    persistent_workers=True,
    dataset=dict(
        _delete_=True,
        type='CustomDataset',
        data_root='data/cifar10-jpeg',
        data_prefix='train',
        pipeline=train_pipeline,
    ),
)
val_dataloader = dict(
    num_workers=1,
    persistent_workers=True,
    dataset=dict(
        _delete_=True,
        type='CustomDataset',
        data_root='data/cifar10-jpeg',
        data_prefix='val',
        pipeline=test_pipeline,
    ),
)
test_dataloader = val_dataloader
