"""H/14 with a linear head."""

_base_ = 'vit-base-p16.py'

model = dict(backbone=dict(arch='H/14'), head=dict(in_channels=1280))
