"""S/16 with a linear head."""

_base_ = 'vit-base-p16.py'

model = dict(backbone=dict(arch='S/16'), head=dict(in_channels=384))
