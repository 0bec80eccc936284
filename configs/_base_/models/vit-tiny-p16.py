"""Ti/16 with a linear head."""

_base_ = 'vit-base-p16.py'

model = dict(backbone=dict(arch='Ti/16'), head=dict(in_channels=192))
