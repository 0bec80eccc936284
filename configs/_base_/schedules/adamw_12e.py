"""AdamW, one epoch of warm-up, cosine: 12 epochs."""

_base_ = '../mmdet_runtime.py'

optim_wrapper = dict(
    type='vit_plugin.OptimWrapper',
    optimizer=dict(type='AdamW', lr=5e-4, weight_decay=0.05, fused=True),
    clip_grad=dict(max_norm=1.0),
)
param_scheduler = [
    dict(type='LinearLR', start_factor=0.01, end=1, convert_to_iter_based=True),
    dict(type='CosineAnnealingLR', begin=1, convert_to_iter_based=True),
]
schedule_length = 12
train_cfg = dict(by_epoch=True, max_epochs=12, val_interval=2)
val_cfg = dict()
test_cfg = dict()
auto_scale_lr = dict(base_batch_size=4)
