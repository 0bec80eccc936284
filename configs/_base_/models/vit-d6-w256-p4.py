"""A common first ViT for 32 x 32 images: a ReLU after the patch projection and in the head."""

model = dict(
    type='ImageClassifier',
    backbone=dict(
        type='vit_plugin.VisionTransformer',
        arch=dict(
            embed_dims=256, num_layers=6, num_heads=8, feedforward_channels=512, patch_size=4
        ),
        img_size=32,
        patch_embed=dict(act_cfg=dict(type='ReLU')),
        drop_rate=0.2,
    ),
    head=dict(
        type='vit_plugin.ViTClsHead',
        num_classes=10,
        in_channels=256,
        hidden_dim=256,
        act_cfg=dict(type='ReLU'),
    ),
)
