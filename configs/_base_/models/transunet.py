"""TransUNet's decoder on R50+B/16, with the loss of its authors: half cross entropy, half Dice."""

model = dict(
    type='EncoderDecoder',
    data_preprocessor=dict(type='SegDataPreProcessor', pad_val=0, seg_pad_val=255),
    backbone=dict(),  # each recipe's
    decode_head=dict(
        type='vit_plugin.TransUNetHead',
        in_channels=[64, 256, 512, 768],
        strides=[2, 4, 8, 16],
        loss_decode=[
            dict(type='CrossEntropyLoss', loss_weight=0.5, avg_non_ignore=True),
            dict(type='vit_plugin.SoftDiceLoss', loss_weight=0.5),
        ],
    ),
    train_cfg=dict(),
    test_cfg=dict(mode='whole'),
)
