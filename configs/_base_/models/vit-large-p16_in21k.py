"""The same from the authors' ImageNet-21k weights."""

_base_ = 'vit-large-p16.py'

model = dict(backbone=dict(init_cfg=dict(
    type='Pretrained',
    checkpoint='https://storage.googleapis.com/vit_models/augreg/L_16-i21k-300ep-lr_0.001-aug_strong1-wd_0.1-do_0.0-sd_0.0.npz')))
