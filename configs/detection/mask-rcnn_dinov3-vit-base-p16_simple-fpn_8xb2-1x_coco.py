"""Mask R-CNN with a simple feature pyramid on DINOv3-B/16 (arXiv:2508.10104), on COCO; 12 epochs.

The backbone is fine-tuned.

    tools/dist_train.sh configs/detection/mask-rcnn_dinov3-vit-base-p16_simple-fpn_8xb2-1x_coco.py 8
"""

_base_ = [
    'mmdet::_base_/models/mask-rcnn_r50_fpn.py',
    'mmdet::_base_/datasets/coco_instance.py',
    '../_base_/backbones/dinov3-vit-base-p16.py',
    '../_base_/schedules/adamw_1x.py',
]

model = dict(
    data_preprocessor=_base_.pixels,
    backbone=dict(_base_.backbone, img_size=(800, 1344), drop_path_rate=0.1, with_cp=True),
    neck=dict(
        _delete_=True, type='vit_plugin.SimpleFPN', in_channels=768, out_channels=256, num_outs=5
    ),
)
