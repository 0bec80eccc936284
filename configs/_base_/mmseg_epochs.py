"""MMSegmentation's runtime for schedules in epochs, where its own count iterations."""

_base_ = 'mmseg_runtime.py'

val_cfg = dict()
test_cfg = dict()
default_hooks = dict(
    timer=dict(type='IterTimerHook'),
    logger=dict(type='LoggerHook', interval=50),
    param_scheduler=dict(type='ParamSchedulerHook'),
    runtime_info=dict(type='vit_plugin.RuntimeInfoHook'),
    checkpoint=dict(type='CheckpointHook', save_best='mIoU', rule='greater'),
    sampler_seed=dict(type='DistSamplerSeedHook'),
)
log_processor = dict(by_epoch=True)
