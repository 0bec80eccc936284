"""MAE (arXiv:2111.06377) without its backbone: 8 x 8 patches of 4 x 4 pixels, 192-channel tokens.

The decoder has 2 blocks of width 128, and the paper's 8 of 512.
"""

model = dict(
    type='MAE',
    neck=dict(
        type='MAEPretrainDecoder',
        num_patches=64,
        patch_size=4,
        embed_dim=192,
        decoder_embed_dim=128,
        decoder_depth=2,
        decoder_num_heads=4,
    ),
    head=dict(
        type='MAEPretrainHead',
        norm_pix=True,
        patch_size=4,
        loss=dict(type='PixelReconstructionLoss', criterion='L2'),
    ),
)
