r"""A block of width 256 on a pooled ResNet with BatchNorm, from scratch on CIFAR-10 as a folder.

    python tools/train.py configs/hybrid_vit/hybrid-vit-d1-w256_1xb500-10e_cifar10-folder.py \
        --amp --cfg-options optim_wrapper.fused_attention=False

The widths and the large steps of the convolutions are those of airbench (arXiv:2404.00498). Standardised filters have no
scale, so weight decay alone keeps a step large in proportion to them.
"""

_base_ = 'hybrid-vit-d2-w192_1xb256-16e_cifar10-folder.py'

model = dict(
    backbone=dict(
        arch=dict(embed_dims=256, num_layers=1, num_heads=4, feedforward_channels=512),
        patch_embed=dict(channels=(24, 64, 256), channels_last=True, patch_size=1),
        numerics=dict(
            act_cfg=dict(approximate='none'),
            stem_norm_cfg=dict(_delete_=True, type='BN', momentum=0.6))),
    head=dict(in_channels=256, loss=dict(label_smooth_val=0.2)))
data_preprocessor = dict(augments=[
    dict(type='RandomCrop', crop_size=32, padding=2, padding_mode='reflect'),
    dict(type='RandomFlip', prob=0.5, direction='horizontal')])
train_dataloader = dict(batch_size=500)
optim_wrapper = dict(
    optimizer=dict(lr=0.016, momentum=0.6),
    paramwise_cfg=dict(custom_keys={
        name: dict(lr_mult=3., decay_mult=12.) for name in ('backbone.0.0', 'conv1', 'conv2')}))
param_scheduler = dict(_delete_=True, type='PolyLR', power=1., eta_min=0., by_epoch=True, convert_to_iter_based=True)
train_cfg = dict(max_epochs=10, val_interval=10)
schedule_length = 10
auto_scale_lr = dict(base_batch_size=500)
