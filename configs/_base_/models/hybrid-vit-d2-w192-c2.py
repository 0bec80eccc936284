"""Two blocks of width 192 after a CNN of two stages with BatchNorm, for 32 x 32 images: 8 x 8 tokens.

Crops of 28 x 28 pixels, 7 x 7 tokens, are its size for training, and cheaper.
"""

_base_ = '../backbones/hybrid-vit-d2-w192.py'

model = dict(
    type='ImageClassifier',
    backbone=dict(
        _base_.backbone,
        img_size=28,
        patch_embed=dict(type='PooledResNetEmbed', channels=(24, 64, 128), channels_last=True),
        numerics=dict(act_cfg=dict(approximate='none'), stem_norm_cfg=dict(type='BN'))),
    head=dict(type='vit_plugin.ViTClsHead', num_classes=10, in_channels=192,
              loss=dict(type='LabelSmoothLoss', label_smooth_val=0.2, mode='original')))
