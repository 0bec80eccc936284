"""SimMIM (arXiv:2111.09886) of a two-block ViT after a three-stage CNN, on unlabeled CIFAR-10.

    python tools/train.py \
        configs/self_supervised/simmim_hybrid-vit-d2-w192-wc3_1xb256-100e_cifar10-folder.py
"""

_base_ = [
    '../_base_/backbones/hybrid-vit-d2-w192-wc3.py',
    '../_base_/selfsup/simmim.py',
    '../_base_/datasets/cifar10-folder_bs256_crops.py',
    '../_base_/schedules/adamw_selfsup_100e.py',
]

model = dict(
    backbone=dict(_base_.backbone, type='vit_plugin.SimMIMViT', out_type='featmap'),
    neck=dict(encoder_stride=8),
    head=dict(patch_size=8),
)
train_dataloader = dict(
    dataset=dict(
        pipeline=[
            dict(type='vit_plugin.LoadImage'),
            dict(
                type='SimMIMMaskGenerator',
                input_size=32,
                mask_patch_size=8,
                model_patch_size=8,
                mask_ratio=0.5,
            ),
            dict(type='PackInputs'),
        ]
    )
)
