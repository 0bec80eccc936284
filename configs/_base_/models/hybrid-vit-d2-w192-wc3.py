"""Two blocks of width 192 after a CNN of three stages behind a whitened root, for 32 x 32 images: 4 x 4 tokens."""

_base_ = '../backbones/hybrid-vit-d2-w192.py'

model = dict(
    type='ImageClassifier',
    backbone=dict(
        _base_.backbone,
        patch_embed=dict(
            type='PooledResNetEmbed', channels=(24, 64, 128, 192), skip=False, whitened=True, projection=False,
            channels_last=True),
        numerics=dict(act_cfg=dict(approximate='none'), stem_norm_cfg=dict(type='BN')),
        encoder=dict(layer_scale_init_value=0.1)),  # the stem learns first, and the blocks do not disturb it
    head=dict(type='vit_plugin.ViTClsHead', num_classes=10, in_channels=192,
              loss=dict(type='LabelSmoothLoss', label_smooth_val=0.2, mode='original')))
