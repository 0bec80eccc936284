"""Muon on masks in batches of 4: one epoch of warm-up, then linear decay to zero; 17 epochs."""

_base_ = '../mmseg_epochs.py'

optim_wrapper = dict(
    type='vit_plugin.OptimWrapper',
    optimizer=dict(type='vit_plugin.Muon', lr=4e-3, weight_decay=0.05),
    paramwise_cfg=dict(flat_decay_mult=0.0),
    clip_grad=dict(max_norm=1.0),
)
param_scheduler = [
    dict(type='LinearLR', start_factor=0.01, end=1, convert_to_iter_based=True),
    dict(type='PolyLR', power=1.0, eta_min=0.0, begin=1, convert_to_iter_based=True),
]
schedule_length = 17
train_cfg = dict(by_epoch=True, max_epochs=17, val_interval=17)
default_hooks = dict(logger=dict(interval=10), checkpoint=dict(interval=17))
auto_scale_lr = dict(base_batch_size=4)
