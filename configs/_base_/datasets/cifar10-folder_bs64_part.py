"""CIFAR-10 as a folder of images, of which a part has labels: 1 % of every class, 500 images."""

_base_ = 'cifar10-folder_bs256.py'

train_dataloader = dict(
    batch_size=64,
    persistent_workers=True,
    dataset=dict(
        _delete_=True,
        type='vit_plugin.stratified_subset',
        fraction=0.01,
        seed=0,
        dataset=dict(
            type='CustomDataset',
            data_root='data/cifar10-jpeg',
            data_prefix='train',
            pipeline=_base_.train_pipeline,
        ),
    ),
)
