"""ViTDet's schedule (arXiv:2203.16527, Appendix A.1): AdamW, batch 64, 100 epochs of COCO.

100 epochs are 184,375 iterations.
"""

_base_ = '../mmdet_runtime.py'

optim_wrapper = dict(
    type='vit_plugin.AmpOptimWrapper',
    constructor='vit_plugin.LayerDecayOptimWrapperConstructor',
    paramwise_cfg=dict(layer_decay_rate=0.7, norm_decay_mult=0.0),
    optimizer=dict(type='AdamW', lr=1e-4, weight_decay=0.1, fused=True),
)
param_scheduler = [
    dict(type='LinearLR', start_factor=0.001, end=250, by_epoch=False),
    dict(type='MultiStepLR', milestones=[163889, 177546], gamma=0.1, by_epoch=False),
]
schedule_length = 184375
train_cfg = dict(by_epoch=False, max_iters=184375, val_interval=5000)
val_cfg = dict()
test_cfg = dict()
default_hooks = dict(
    checkpoint=dict(by_epoch=False, interval=5000), logger=dict(log_metric_by_epoch=False)
)
log_processor = dict(by_epoch=False)
auto_scale_lr = dict(base_batch_size=64)
