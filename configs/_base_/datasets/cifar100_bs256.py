"""CIFAR-100 in the framework's own data set, which downloads it; random crop and flip."""

_base_ = 'cifar10_bs256.py'

data_preprocessor = dict(num_classes=100, mean=[129.304, 124.070, 112.434], std=[68.170, 65.392, 70.418])

train_dataloader = dict(dataset=dict(type='CIFAR100', data_root='data/cifar100'))
val_dataloader = dict(dataset=dict(type='CIFAR100', data_root='data/cifar100'))
test_dataloader = val_dataloader
