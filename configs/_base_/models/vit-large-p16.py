"""L/16 with a linear head."""

_base_ = 'vit-base-p16.py'

model = dict(backbone=dict(arch='L/16'), head=dict(in_channels=1024))
