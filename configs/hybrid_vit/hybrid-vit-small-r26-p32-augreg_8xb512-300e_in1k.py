"""R26+S/32 from scratch on ImageNet-1k with what AugReg takes for S/16 (arXiv:2106.10270).

    tools/dist_train.sh configs/hybrid_vit/hybrid-vit-small-r26-p32-augreg_8xb512-300e_in1k.py 8

Not yet trained by us.
"""

_base_ = '../vit/vit-small-p16-augreg_8xb512-300e_in1k.py'

model = dict(backbone=dict(arch='R26+S/32'))
