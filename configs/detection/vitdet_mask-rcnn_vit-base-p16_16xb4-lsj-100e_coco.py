"""ViTDet (arXiv:2203.16527): Mask R-CNN on plain B/16 (MAE weights), COCO at 1024 px; 100 epochs.

    NNODES=2 NODE_RANK=0 MASTER_ADDR=HOST tools/dist_train.sh \
        configs/detection/vitdet_mask-rcnn_vit-base-p16_16xb4-lsj-100e_coco.py 8

Published by detectron2: 51.6 box AP, 45.9 mask AP.
"""

_base_ = [
    '../_base_/models/vitdet-mask-rcnn.py',
    '../_base_/datasets/coco-instance_bs4_lsj-1024px.py',
    '../_base_/schedules/vitdet_184k.py',
]
