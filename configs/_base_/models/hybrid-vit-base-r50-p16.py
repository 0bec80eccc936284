"""R50+B/16 with a linear head; dropout as in the authors' `configs/models.py`."""

_base_ = 'vit-base-p16.py'

model = dict(backbone=dict(arch='R50+B/16', drop_rate=0.1))
