"""A linear head on one 768-channel map: 1 x 1 convolutions around a batch norm, no activation.

What MMSegmentation's `FCNHead` is without its activation: a linear function of each token.
"""

model = dict(
    type='EncoderDecoder',
    data_preprocessor=dict(
        type='SegDataPreProcessor', bgr_to_rgb=True, size=(512, 512), pad_val=0, seg_pad_val=255
    ),
    backbone=dict(),  # each recipe's
    decode_head=dict(
        type='FCNHead',
        in_channels=768,
        channels=768,
        num_convs=1,
        kernel_size=1,
        concat_input=False,
        dropout_ratio=0.0,
        num_classes=150,
        norm_cfg=dict(type='SyncBN'),
        act_cfg=None,
        align_corners=False,
    ),
    train_cfg=dict(),
    test_cfg=dict(mode='slide', crop_size=(512, 512), stride=(341, 341)),
)
