"""A ViT of six blocks for 32 x 32 images, with fixed positions; to pre-train and to fine-tune."""

backbone = dict(
    type='vit_plugin.VisionTransformer',
    arch=dict(embed_dims=192, num_layers=6, num_heads=6, feedforward_channels=384, patch_size=4),
    img_size=32,
    pos_embed=dict(type='sincos2d', endpoint=False),
    with_cls_token=False,
    out_type='avg_featmap',
)
