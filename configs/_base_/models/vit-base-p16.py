"""B/16 with a linear head."""

model = dict(
    type='ImageClassifier',
    backbone=dict(type='vit_plugin.VisionTransformer', arch='B/16'),
    head=dict(type='vit_plugin.ViTClsHead', num_classes=1000, in_channels=768),
)
