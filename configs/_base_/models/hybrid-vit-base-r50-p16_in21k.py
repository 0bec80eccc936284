"""The same from the authors' ImageNet-21k weights."""

_base_ = 'hybrid-vit-base-r50-p16.py'

model = dict(
    backbone=dict(
        init_cfg=dict(
            type='Pretrained',
            checkpoint='https://storage.googleapis.com/vit_models/imagenet21k/R50+ViT-B_16.npz',
        )
    )
)
