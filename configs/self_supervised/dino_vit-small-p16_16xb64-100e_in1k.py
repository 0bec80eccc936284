"""DINO (arXiv:2104.14294) of ViT-S/16 on ImageNet-1k without labels, with ten small views.

    NNODES=2 tools/dist_train.sh configs/self_supervised/dino_vit-small-p16_16xb64-100e_in1k.py 8

As facebookresearch/dino for 100 epochs, but for two things: the weight decay stays 0.04, and the
prototypes learn from the first epoch on.
"""

_base_ = [
    '../_base_/datasets/imagenet_bs64_multicrop.py',
    '../_base_/schedules/adamw_selfsup_100e.py',
]

model = dict(
    type='vit_plugin.DINO',
    backbone=dict(
        type='vit_plugin.VisionTransformer', arch='S/16', numerics='timm', drop_path_rate=0.1
    ),
    neck=dict(type='vit_plugin.DINONeck', in_channels=384),
    head=dict(
        type='vit_plugin.DINOHead', out_channels=65536, teacher_temperature=(0.04, 0.07), warmup=0.3
    ),
)
optim_wrapper = dict(
    type='vit_plugin.AmpOptimWrapper',
    optimizer=dict(lr=2e-3, weight_decay=0.04),
    clip_grad=dict(max_norm=3.0),
)
auto_scale_lr = dict(base_batch_size=1024)
