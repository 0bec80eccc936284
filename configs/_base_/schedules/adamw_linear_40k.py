"""DINOv2's 40k iterations of a linear head on frozen features: AdamW, warm-up, linear decay.

The schedule is that of arXiv:2304.07193.
"""

_base_ = ['mmseg::_base_/schedules/schedule_40k.py', '../mmseg_runtime.py']

optim_wrapper = dict(
    type='vit_plugin.OptimWrapper',
    optimizer=dict(_delete_=True, type='AdamW', lr=1e-3, weight_decay=1e-4, fused=True),
)
param_scheduler = [
    dict(type='LinearLR', start_factor=1e-3, end=1500, by_epoch=False),
    dict(type='PolyLR', power=1.0, eta_min=0.0, begin=1500, by_epoch=False),
]
schedule_length = 40000
default_hooks = dict(
    runtime_info=dict(type='vit_plugin.RuntimeInfoHook'),
    checkpoint=dict(max_keep_ckpts=2, save_best='mIoU'),
)
auto_scale_lr = dict(base_batch_size=16)
