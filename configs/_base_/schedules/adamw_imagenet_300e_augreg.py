"""The same for a batch of 4096, of which 10,000 steps are 32 epochs."""

_base_ = 'adamw_imagenet_300e.py'

param_scheduler = [
    dict(type='LinearLR', start_factor=1e-4, end=32, convert_to_iter_based=True),
    dict(type='CosineAnnealingLR', begin=32, convert_to_iter_based=True),
]
auto_scale_lr = dict(base_batch_size=4096)
