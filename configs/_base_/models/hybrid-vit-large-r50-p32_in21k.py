"""The same from the authors' ImageNet-21k weights."""

_base_ = 'hybrid-vit-large-r50-p32.py'

model = dict(backbone=dict(init_cfg=dict(
    type='Pretrained',
    checkpoint='https://storage.googleapis.com/vit_models/augreg/R50_L_32-i21k-300ep-lr_0.001-aug_medium1-wd_0.1-do_0.1-sd_0.1.npz')))
