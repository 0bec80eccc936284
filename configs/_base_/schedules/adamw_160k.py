"""MMSegmentation's 160k iterations for a transformer: AdamW, warm-up, linear decay.

The learning rates also decay layer by layer toward the image.
"""

_base_ = ['mmseg::_base_/schedules/schedule_160k.py', '../mmseg_runtime.py']

optim_wrapper = dict(
    type='vit_plugin.OptimWrapper',
    constructor='vit_plugin.LayerDecayOptimWrapperConstructor',
    paramwise_cfg=dict(layer_decay_rate=0.75, norm_decay_mult=0.0),
    optimizer=dict(_delete_=True, type='AdamW', lr=1e-4, weight_decay=0.05, fused=True),
)
param_scheduler = [
    dict(type='LinearLR', start_factor=1e-3, end=1500, by_epoch=False),
    dict(type='PolyLR', power=1.0, eta_min=0.0, begin=1500, by_epoch=False),
]
schedule_length = 160000
default_hooks = dict(
    runtime_info=dict(type='vit_plugin.RuntimeInfoHook'),
    checkpoint=dict(max_keep_ckpts=2, save_best='mIoU'),
)
auto_scale_lr = dict(base_batch_size=16)
