"""AdamW for 300 epochs of ImageNet-1k, batch 1024: 8 epochs of warm-up, cosine, clipped at 1.

The warm-up has 10,000 steps.

big_vision's weight decay of 1e-4 a step, without the learning rate in it, is 0.1 here.
"""

_base_ = '../default_runtime.py'

optim_wrapper = dict(
    type='vit_plugin.AmpOptimWrapper',
    constructor='vit_plugin.LayerDecayOptimWrapperConstructor',
    # No weight decay of norms, biases and positions.
    paramwise_cfg=dict(layer_decay_rate=1.0, flat_decay_mult=0.0),
    optimizer=dict(type='AdamW', lr=1e-3, weight_decay=0.1, fused=True),
    clip_grad=dict(max_norm=1.0),
)
param_scheduler = [
    dict(type='LinearLR', start_factor=1e-4, end=8, convert_to_iter_based=True),
    dict(type='CosineAnnealingLR', begin=8, convert_to_iter_based=True),
]
schedule_length = 300
train_cfg = dict(by_epoch=True, max_epochs=300, val_interval=5)
val_cfg = dict()
test_cfg = dict()
auto_scale_lr = dict(base_batch_size=1024)
