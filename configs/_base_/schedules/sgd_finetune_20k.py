"""The authors' fine-tuning: SGD, 500 steps of warm-up, cosine, gradients clipped at 1.

The recipe is from arXiv:2010.11929, Appendix B.1.1.
"""

_base_ = '../default_runtime.py'

optim_wrapper = dict(
    type='vit_plugin.OptimWrapper',
    optimizer=dict(type='SGD', lr=0.03, momentum=0.9, fused=True),
    clip_grad=dict(max_norm=1.0),
)
param_scheduler = [
    dict(type='LinearLR', start_factor=0.002, end=500, by_epoch=False),
    dict(type='CosineAnnealingLR', begin=500, by_epoch=False),
]
schedule_length = 20000
train_cfg = dict(by_epoch=False, max_iters=20000, val_interval=2000)
val_cfg = dict()
test_cfg = dict()
default_hooks = dict(
    checkpoint=dict(by_epoch=False, interval=2000), logger=dict(log_metric_by_epoch=False)
)
log_processor = dict(by_epoch=False)
auto_scale_lr = dict(base_batch_size=512)
