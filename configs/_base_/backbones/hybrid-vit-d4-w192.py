"""A ViT of four blocks on a ResNet of two stages for 32 x 32 images: 4 x 4 tokens, with fixed positions."""

backbone = dict(
    type='vit_plugin.VisionTransformer',
    arch=dict(embed_dims=192, num_layers=4, num_heads=6, feedforward_channels=384),
    patch_embed=dict(type='ResNetEmbed', stage_depths=(2, 2), width=32, root_stride=2, patch_size=2),
    numerics=dict(stem_norm_cfg=dict(type='GN', num_groups=8)),
    img_size=32,
    pos_embed=dict(type='sincos2d', endpoint=False),
    with_cls_token=False,
    out_type='avg_featmap')
