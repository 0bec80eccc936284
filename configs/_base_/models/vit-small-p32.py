"""S/32 with a linear head."""

_base_ = 'vit-base-p16.py'

model = dict(backbone=dict(arch='S/32'), head=dict(in_channels=384))
