"""TransUNet's 150 epochs: SGD, whose rate falls to zero by the power 0.9 at every iteration."""

_base_ = '../mmseg_epochs.py'

optim_wrapper = dict(
    type='vit_plugin.OptimWrapper',
    optimizer=dict(type='SGD', lr=0.01, momentum=0.9, weight_decay=1e-4),
)
param_scheduler = [dict(type='PolyLR', power=0.9, eta_min=0.0, end=150, convert_to_iter_based=True)]
schedule_length = 150
train_cfg = dict(by_epoch=True, max_epochs=150, val_interval=10)
default_hooks = dict(checkpoint=dict(interval=10, max_keep_ckpts=2, save_best='mDice'))
auto_scale_lr = dict(base_batch_size=24)
