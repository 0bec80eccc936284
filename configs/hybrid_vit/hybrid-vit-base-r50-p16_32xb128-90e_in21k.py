"""Pre-training of R50+B/16 on ImageNet-21k with tanh pre-logits (arXiv:2010.11929, Table 3).

    NNODES=4 tools/dist_train.sh configs/hybrid_vit/hybrid-vit-base-r50-p16_32xb128-90e_in21k.py 8

Not yet trained by us.
"""

_base_ = '../vit/vit-base-p16_32xb128-90e_in21k.py'

model = dict(backbone=dict(arch='R50+B/16'))
