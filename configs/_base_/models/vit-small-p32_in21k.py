"""The same from the authors' ImageNet-21k weights."""

_base_ = 'vit-small-p32.py'

model = dict(backbone=dict(init_cfg=dict(
    type='Pretrained',
    checkpoint='https://storage.googleapis.com/vit_models/augreg/S_32-i21k-300ep-lr_0.001-aug_none-wd_0.1-do_0.0-sd_0.0.npz')))
