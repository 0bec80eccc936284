"""Two blocks of width 192 after a CNN of three stages with BatchNorm, for 32 x 32 images: 4 x 4 tokens."""

_base_ = 'hybrid-vit-d2-w192.py'

model = dict(backbone=dict(
    patch_embed=dict(channels=(24, 64, 128, 192), channels_last=True, patch_size=1),
    numerics=dict(
        act_cfg=dict(approximate='none'),
        stem_norm_cfg=dict(_delete_=True, type='BN')),
    encoder=dict(layer_scale_init_value=0.1)))  # the stem learns first, and the blocks do not disturb it
