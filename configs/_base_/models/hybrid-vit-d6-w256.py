"""The small ViT on a ResNet of two stages, with as many tokens (8 x 8) from 32 x 32 images."""

_base_ = 'vit-d6-w256-p4.py'

model = dict(
    backbone=dict(
        patch_embed=dict(
            _delete_=True,
            type='ResNetEmbed',
            stage_depths=(2, 2),
            width=32,
            root_stride=2,
            patch_size=1,
        )
    )
)
