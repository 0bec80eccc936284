"""MoCo v3 (arXiv:2104.02057) of ViT-B/16 on ImageNet-1k without labels, by MMPretrain's recipe.

NNODES=2 tools/dist_train.sh configs/self_supervised/mocov3_vit-base-p16_16xb256-300e_in1k.py 8
"""

_base_ = 'mmpretrain::mocov3/mocov3_vit-base-p16_16xb256-amp-coslr-300e_in1k.py'

model = dict(
    backbone=dict(
        _delete_=True,
        type='vit_plugin.VisionTransformer',
        arch='B/16',
        numerics='timm',
        patch_embed=dict(frozen=True),
        pos_embed=dict(type='sincos2d', endpoint=False),
    )
)
find_unused_parameters = False
runner_type = 'vit_plugin.Runner'
schedule_length = 300
