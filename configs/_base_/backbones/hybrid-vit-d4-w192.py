"""A ViT of four blocks on a ResNet of two basic blocks, for 32 x 32 images: 4 x 4 tokens, 56 million operations."""

backbone = dict(
    type='vit_plugin.VisionTransformer',
    arch=dict(embed_dims=192, num_layers=4, num_heads=6, feedforward_channels=384, patch_size=2,
              resnet=dict(stage_depths=(1, 1), width=64, root_stride=2, block='basic')),
    numerics=dict(stem_norm_cfg=dict(num_groups=8)),  # the authors' 32 would norm 2 channels at a time
    img_size=32,
    pos_embed=dict(type='sincos2d', endpoint=False),
    with_cls_token=False,
    out_type='avg_featmap')
