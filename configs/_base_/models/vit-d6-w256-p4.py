"""A small ViT for 32 x 32 images: a ReLU after the patch projection and in a head 512 wide.

There is no norm after the blocks. The published model for CIFAR-10 (docs/results.md) keeps the 100
outputs of that for CIFAR-100: 3,374,948 parameters, of which 3,328,778 are left with 10 classes.
"""

model = dict(
    type='ImageClassifier',
    backbone=dict(
        type='vit_plugin.VisionTransformer',
        arch=dict(
            embed_dims=256, num_layers=6, num_heads=8, feedforward_channels=512, patch_size=4
        ),
        img_size=32,
        patch_embed=dict(act_cfg=dict(type='ReLU')),
        encoder=dict(final_norm=False),
        drop_rate=0.2,
    ),
    head=dict(
        type='vit_plugin.ViTClsHead',
        num_classes=10,
        in_channels=256,
        hidden_dim=512,
        act_cfg=dict(type='ReLU'),
    ),
)
