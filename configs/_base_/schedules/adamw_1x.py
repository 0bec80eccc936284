"""MMDetection's 1x (12 epochs, batch 16) for a transformer: AdamW, layer-wise learning rates.

The learning rates decay layer by layer toward the image.
"""

_base_ = ['mmdet::_base_/schedules/schedule_1x.py', '../mmdet_runtime.py']

optim_wrapper = dict(
    type='vit_plugin.OptimWrapper',
    constructor='vit_plugin.LayerDecayOptimWrapperConstructor',
    paramwise_cfg=dict(layer_decay_rate=0.8, norm_decay_mult=0.0),
    optimizer=dict(_delete_=True, type='AdamW', lr=1e-4, weight_decay=0.1, fused=True),
    clip_grad=dict(max_norm=1.0),
)
schedule_length = 12
