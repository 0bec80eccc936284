"""A six-block ViT for 32 x 32 images: 8 x 8 tokens and about the compute of hybrid-vit-d2-w192.

It has 71 million operations.
"""

model = dict(
    type='ImageClassifier',
    backbone=dict(
        type='vit_plugin.VisionTransformer',
        arch=dict(
            embed_dims=144, num_layers=6, num_heads=3, feedforward_channels=288, patch_size=4
        ),
        img_size=32,
        with_cls_token=False,
        out_type='avg_featmap',
    ),
    head=dict(
        type='vit_plugin.ViTClsHead',
        num_classes=10,
        in_channels=144,
        loss=dict(type='LabelSmoothLoss', label_smooth_val=0.1, mode='original'),
    ),
)
