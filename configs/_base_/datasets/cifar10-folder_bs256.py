"""CIFAR-10 as a folder of images, data/cifar10-jpeg/{train,val}/<class>/*.jpg; random crop and flip."""

_base_ = 'cifar10_bs256.py'

data_preprocessor = dict(to_rgb=True)  # files are read as BGR

train_pipeline = [
    dict(type='vit_plugin.LoadImage'),
    dict(type='RandomCrop', crop_size=32, padding=4),
    dict(type='RandomFlip', prob=0.5, direction='horizontal'),
    dict(type='PackInputs'),
]
test_pipeline = [dict(type='LoadImageFromFile'), dict(type='PackInputs')]

train_dataloader = dict(dataset=dict(
    _delete_=True, type='CustomDataset', data_root='data/cifar10-jpeg', data_prefix='train', pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(
    _delete_=True, type='CustomDataset', data_root='data/cifar10-jpeg', data_prefix='val', pipeline=test_pipeline))
test_dataloader = val_dataloader
