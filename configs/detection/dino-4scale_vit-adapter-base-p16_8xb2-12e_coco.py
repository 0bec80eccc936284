"""DINO (arXiv:2203.03605) on ViT-Adapter-B/16's pyramid (arXiv:2205.08534), on COCO; 12 epochs.

tools/dist_train.sh configs/detection/dino-4scale_vit-adapter-base-p16_8xb2-12e_coco.py 8
"""

_base_ = ['../_base_/models/dino-4scale_12e.py', '../_base_/backbones/vit-adapter-base-p16.py']

model = dict(
    data_preprocessor=_base_.pixels,
    backbone=dict(
        _base_.backbone,
        out_indices=(1, 2, 3),
        backbone=dict(
            _base_.backbone.backbone,
            img_size=(800, 1344),
            encoder=dict(window=dict(size=14, global_blocks=(2, 5, 8, 11))),
        ),
    ),
    neck=dict(in_channels=[768, 768, 768]),
)
# The pre-trained transformer learns slowly, the new adapter does not.
optim_wrapper = dict(
    paramwise_cfg=dict(custom_keys={'_delete_': True, 'backbone.backbone': dict(lr_mult=0.1)})
)
