"""SimMIM (arXiv:2111.09886) without its backbone: tokens of 192 channels, patches of 4 pixels."""

model = dict(
    type='SimMIM',
    neck=dict(type='SimMIMLinearDecoder', in_channels=192, encoder_stride=4),
    head=dict(
        type='SimMIMHead',
        patch_size=4,
        loss=dict(type='PixelReconstructionLoss', criterion='L1', channel=3),
    ),
)
