"""The same from the authors' ImageNet-21k weights."""

_base_ = 'vit-small-p16.py'

model = dict(backbone=dict(init_cfg=dict(
    type='Pretrained',
    checkpoint='https://storage.googleapis.com/vit_models/augreg/S_16-i21k-300ep-lr_0.001-aug_light1-wd_0.03-do_0.0-sd_0.0.npz')))
