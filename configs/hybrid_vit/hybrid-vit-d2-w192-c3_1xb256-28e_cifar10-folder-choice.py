r"""The same recipe without a tenth of the training images, validated on these, to choose a variant by.

    python tools/sweep.py configs/hybrid_vit/hybrid-vit-d2-w192-c3_1xb256-28e_cifar10-folder-choice.py \
        --grid model.backbone.arch.num_layers=0,1,2,3 --cfg-options train_cfg.max_epochs=2 train_cfg.val_interval=2 \
        optim_wrapper.type=vit_plugin.AmpOptimWrapper optim_wrapper.fused_attention=False

The test images play no part in this choice.
"""

_base_ = 'hybrid-vit-d2-w192-c3_1xb256-28e_cifar10-folder.py'

# 500 images of each class, chosen by the seed 0.
train_dataloader = dict(dataset=dict(
    _delete_=True, type='vit_plugin.stratified_subset', fraction=0.1, rest=True,
    dataset=_base_.train_dataloader.dataset))
val_dataloader = dict(dataset=dict(
    _delete_=True, type='vit_plugin.stratified_subset', fraction=0.1,
    dataset=dict(_base_.val_dataloader.dataset, data_prefix='train')))
test_dataloader = val_dataloader
