"""SimMIM (arXiv:2111.09886) of ViT-B/16 on ImageNet-1k without labels, at 224 px.

It follows MMPretrain's recipe for Swin.

    NNODES=2 tools/dist_train.sh configs/self_supervised/simmim_vit-base-p16_16xb128-800e_in1k.py 8
"""

_base_ = 'mmpretrain::simmim/simmim_swin-base-w6_16xb128-amp-coslr-800e_in1k-192px.py'

model = dict(
    backbone=dict(
        _delete_=True,
        type='vit_plugin.SimMIMViT',
        arch='B/16',
        numerics='timm',
        drop_path_rate=0.1,
        pos_embed=dict(type='sincos2d', endpoint=False),
    ),
    neck=dict(in_channels=768, encoder_stride=16),
    head=dict(patch_size=16),
)
train_dataloader = dict(
    batch_size=128,
    dataset=dict(
        pipeline=[
            dict(type='LoadImageFromFile'),
            dict(type='RandomResizedCrop', scale=224, crop_ratio_range=(0.67, 1.0)),
            dict(type='RandomFlip', prob=0.5),
            dict(
                type='SimMIMMaskGenerator',
                input_size=224,
                mask_patch_size=32,
                model_patch_size=16,
                mask_ratio=0.6,
            ),
            dict(type='PackInputs'),
        ]
    ),
)
optim_wrapper = dict(
    constructor='vit_plugin.LayerDecayOptimWrapperConstructor',
    paramwise_cfg=dict(_delete_=True, layer_decay_rate=1.0, flat_decay_mult=0.0),
)
runner_type = 'vit_plugin.Runner'
schedule_length = 800
