"""ViTDet (arXiv:2203.16527): Mask R-CNN on plain H/16 (MAE weights), COCO at 1024 px; 75 epochs.

    NNODES=2 NODE_RANK=0 MASTER_ADDR=HOST tools/dist_train.sh \
        configs/detection/vitdet_mask-rcnn_vit-huge-p16_16xb4-lsj-75e_coco.py 8

Published by detectron2: 56.7 box AP, 50.2 mask AP.
"""

_base_ = 'vitdet_mask-rcnn_vit-base-p16_16xb4-lsj-100e_coco.py'

model = dict(
    backbone=dict(
        arch='H/16',
        drop_path_rate=0.5,
        encoder=dict(window=dict(global_blocks=(7, 15, 23, 31))),
        init_cfg=dict(
            checkpoint='https://dl.fbaipublicfiles.com/mae/pretrain/mae_pretrain_vit_huge.pth'
        ),
    ),
    neck=dict(in_channels=1280),
)
optim_wrapper = dict(paramwise_cfg=dict(layer_decay_rate=0.9, norm_decay_mult=1.0))
param_scheduler = [
    dict(type='LinearLR', start_factor=0.001, end=250, by_epoch=False),
    dict(type='MultiStepLR', milestones=[122916, 133159], gamma=0.1, by_epoch=False),
]
schedule_length = 138281
train_cfg = dict(max_iters=138281)
