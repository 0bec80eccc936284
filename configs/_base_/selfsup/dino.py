"""DINO (arXiv:2104.14294) on features of 192 channels, without its backbone.

The MLP is narrower than the paper's (2048) and there are fewer prototypes (65,536), for small
images.
"""

model = dict(
    type='vit_plugin.DINO',
    momentum=0.99,
    neck=dict(
        type='vit_plugin.DINONeck',
        in_channels=192,
        hid_channels=512,
        bottleneck=128,
        out_channels=4096,
    ),
    head=dict(
        type='vit_plugin.DINOHead', out_channels=4096, teacher_temperature=(0.04, 0.07), warmup=0.3
    ),
)
