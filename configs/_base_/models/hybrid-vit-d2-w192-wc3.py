"""The hybrid of two blocks after three stages, as a classifier."""

_base_ = '../backbones/hybrid-vit-d2-w192-wc3.py'

model = dict(
    type='ImageClassifier',
    backbone=_base_.backbone,
    head=dict(
        type='vit_plugin.ViTClsHead',
        num_classes=10,
        in_channels=192,
        loss=dict(type='LabelSmoothLoss', label_smooth_val=0.2, mode='original'),
    ),
)
