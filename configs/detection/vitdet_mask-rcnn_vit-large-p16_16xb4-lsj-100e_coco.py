"""ViTDet (arXiv:2203.16527): Mask R-CNN on plain L/16 (MAE weights), COCO at 1024 px; 100 epochs.

    NNODES=2 NODE_RANK=0 MASTER_ADDR=HOST tools/dist_train.sh \
        configs/detection/vitdet_mask-rcnn_vit-large-p16_16xb4-lsj-100e_coco.py 8

Published by detectron2: 55.5 box AP, 49.2 mask AP.
"""

_base_ = 'vitdet_mask-rcnn_vit-base-p16_16xb4-lsj-100e_coco.py'

model = dict(
    backbone=dict(
        arch='L/16',
        drop_path_rate=0.4,
        encoder=dict(window=dict(global_blocks=(5, 11, 17, 23))),
        init_cfg=dict(
            checkpoint='https://dl.fbaipublicfiles.com/mae/pretrain/mae_pretrain_vit_large.pth'
        ),
    ),
    neck=dict(in_channels=1024),
)
optim_wrapper = dict(paramwise_cfg=dict(layer_decay_rate=0.8))
