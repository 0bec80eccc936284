"""AdamW, two epochs of warm-up, cosine: 25 epochs."""

optim_wrapper = dict(
    type='vit_plugin.OptimWrapper',
    constructor='vit_plugin.LayerDecayOptimWrapperConstructor',
    # No weight decay of norms, biases and positions.
    paramwise_cfg=dict(layer_decay_rate=1.0, flat_decay_mult=0.0),
    optimizer=dict(type='AdamW', lr=2e-3, weight_decay=0.05, fused=True),
    clip_grad=dict(max_norm=1.0),
)
param_scheduler = [
    dict(type='LinearLR', start_factor=0.01, end=2, convert_to_iter_based=True),
    dict(type='CosineAnnealingLR', begin=2, convert_to_iter_based=True),
]
schedule_length = 25
train_cfg = dict(by_epoch=True, max_epochs=25, val_interval=1)
val_cfg = dict()
test_cfg = dict()
auto_scale_lr = dict(base_batch_size=16)
