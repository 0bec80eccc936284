"""Muon on masks in batches of 4: one epoch of warm-up, then linear decay to zero; 17 epochs."""

_base_ = '../mmseg_runtime.py'

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
val_cfg = dict()
test_cfg = dict()
default_hooks = dict(
    timer=dict(type='IterTimerHook'),
    logger=dict(type='LoggerHook', interval=10),
    param_scheduler=dict(type='ParamSchedulerHook'),
    runtime_info=dict(type='vit_plugin.RuntimeInfoHook'),
    checkpoint=dict(type='CheckpointHook', interval=17, save_best='mIoU', rule='greater'),
    sampler_seed=dict(type='DistSamplerSeedHook'),
)
log_processor = dict(by_epoch=True)
auto_scale_lr = dict(base_batch_size=4)
