"""Depth Anything's decoder (arXiv:2401.10891) on four maps of 768 channels, up to 10 m."""

model = dict(
    type='DepthEstimator',
    data_preprocessor=dict(
        type='SegDataPreProcessor',
        bgr_to_rgb=True,
        size=(480, 480),
        seg_pad_val=0,
        test_cfg=dict(size_divisor=16),
    ),
    backbone=dict(),  # each recipe's
    decode_head=dict(
        type='vit_plugin.DPTDepthHead',
        in_channels=[768, 768, 768, 768],
        strides=[16, 16, 16, 16],
        level_channels=[96, 192, 384, 768],
        channels=128,
        max_depth=10.0,
    ),
    train_cfg=dict(),
    test_cfg=dict(mode='whole'),
)
