"""AdamW for 100 epochs without labels: 10 epochs of warm-up, cosine, clipped at 1."""

_base_ = '../default_runtime.py'

optim_wrapper = dict(
    type='vit_plugin.OptimWrapper',
    constructor='vit_plugin.LayerDecayOptimWrapperConstructor',
    # No weight decay of norms, biases and positions.
    paramwise_cfg=dict(layer_decay_rate=1.0, flat_decay_mult=0.0),
    optimizer=dict(type='AdamW', lr=1e-3, weight_decay=0.05, fused=True),
    clip_grad=dict(max_norm=1.0),
)
param_scheduler = [
    dict(type='LinearLR', start_factor=1e-4, end=10, convert_to_iter_based=True),
    dict(type='CosineAnnealingLR', begin=10, convert_to_iter_based=True),
]
schedule_length = 100
train_cfg = dict(by_epoch=True, max_epochs=100)
auto_scale_lr = dict(base_batch_size=256)
