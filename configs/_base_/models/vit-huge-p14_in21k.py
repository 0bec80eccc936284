"""The same from the authors' ImageNet-21k weights."""

_base_ = 'vit-huge-p14.py'

model = dict(backbone=dict(init_cfg=dict(
    type='Pretrained',
    checkpoint='https://storage.googleapis.com/vit_models/imagenet21k/ViT-H_14.npz')))
