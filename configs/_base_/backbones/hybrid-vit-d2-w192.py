"""A two-block ViT on a small pooled ResNet, for 32 x 32 images: 4 x 4 tokens.

It has 69 million operations.
"""

backbone = dict(
    type='vit_plugin.VisionTransformer',
    arch=dict(embed_dims=192, num_layers=2, num_heads=3, feedforward_channels=384),
    patch_embed=dict(type='PooledResNetEmbed', channels=(32, 64, 128), patch_size=2),
    numerics=dict(stem_norm_cfg=dict(num_groups=8)),  # the authors' 32 would norm single channels
    img_size=32,
    pos_embed=dict(type='sincos2d', endpoint=False),
    with_cls_token=False,
    out_type='avg_featmap',
)
