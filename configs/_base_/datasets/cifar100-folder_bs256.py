"""CIFAR-100 as an image folder, data/cifar100-jpeg/{train,val}/<class>/*.jpg; random crop, flip."""

_base_ = 'cifar10-folder_bs256.py'

data_preprocessor = dict(
    num_classes=100, mean=[129.304, 124.070, 112.434], std=[68.170, 65.392, 70.418]
)

train_dataloader = dict(dataset=dict(data_root='data/cifar100-jpeg'))
val_dataloader = dict(dataset=dict(data_root='data/cifar100-jpeg'))
test_dataloader = val_dataloader
