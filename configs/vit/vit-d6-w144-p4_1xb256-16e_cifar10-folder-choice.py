r"""The six-block ViT with a tenth of the training images held out for validation, to tune settings.

    python benchmarks sweep configs/vit/vit-d6-w144-p4_1xb256-16e_cifar10-folder-choice.py \
        --seeds 1 --grid param_scheduler.eta_max=5e-3,1e-2,2e-2 --cfg-options train_cfg.max_epochs=1

The test images play no part in this choice.
"""

_base_ = 'vit-d6-w144-p4_1xb256-16e_cifar10-folder.py'

# 500 images of each class, chosen by the seed 0.
train_dataloader = dict(
    dataset=dict(
        _delete_=True,
        type='vit_plugin.stratified_subset',
        fraction=0.1,
        rest=True,
        dataset=_base_.train_dataloader.dataset,
    )
)
val_dataloader = dict(
    dataset=dict(
        _delete_=True,
        type='vit_plugin.stratified_subset',
        fraction=0.1,
        dataset=dict(_base_.val_dataloader.dataset, data_prefix='train'),
    )
)
test_dataloader = val_dataloader
