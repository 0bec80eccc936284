"""A two-block ViT after a three-stage CNN with a whitened root, for 32 x 32 images: 4 x 4 tokens.

It has 81 million operations.
"""

_base_ = 'hybrid-vit-d2-w192.py'

backbone = dict(
    patch_embed=dict(
        channels=(24, 64, 128, 192),
        patch_size=1,
        projection=False,
        whitened=True,
        skip=False,
        channels_last=True,
    ),
    numerics=dict(act_cfg=dict(approximate='none'), stem_norm_cfg=dict(_delete_=True, type='BN')),
    # The stem learns first, and the blocks do not disturb it.
    encoder=dict(layer_scale_init_value=0.1),
)
