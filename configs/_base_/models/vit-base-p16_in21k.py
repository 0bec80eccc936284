"""The same from the authors' ImageNet-21k weights."""

_base_ = 'vit-base-p16.py'

model = dict(
    backbone=dict(
        init_cfg=dict(
            type='Pretrained',
            checkpoint='https://storage.googleapis.com/vit_models/imagenet21k/ViT-B_16.npz',
        )
    )
)
