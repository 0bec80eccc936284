"""MAE (arXiv:2111.06377) of ViT-B/16 on ImageNet-1k without labels, by MMPretrain's recipe.

tools/dist_train.sh configs/self_supervised/mae_vit-base-p16_8xb512-800e_in1k.py 8
"""

_base_ = 'mmpretrain::mae/mae_vit-base-p16_8xb512-amp-coslr-800e_in1k.py'

model = dict(
    backbone=dict(
        _delete_=True,
        type='vit_plugin.MAEViT',
        arch='B/16',
        mask_ratio=0.75,
        numerics='timm',
        pos_embed=dict(type='sincos2d', endpoint=False),
    )
)
optim_wrapper = dict(
    constructor='vit_plugin.LayerDecayOptimWrapperConstructor',
    paramwise_cfg=dict(_delete_=True, layer_decay_rate=1.0, flat_decay_mult=0.0),
)
runner_type = 'vit_plugin.Runner'
schedule_length = 800
