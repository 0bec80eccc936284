"""The small hybrid for 32 x 32 images, with learned positions, as a classifier."""

_base_ = '../backbones/hybrid-vit-d2-w192.py'

model = dict(
    type='ImageClassifier',
    backbone=dict(_base_.backbone, pos_embed='learned'),
    head=dict(
        type='vit_plugin.ViTClsHead',
        num_classes=10,
        in_channels=192,
        loss=dict(type='LabelSmoothLoss', label_smooth_val=0.1, mode='original'),
    ),
)
