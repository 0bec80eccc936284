"""A linear head on the frozen map of B/16, on ADE20K; 40k iterations.

tools/dist_train.sh configs/segmentation/vit-base-p16_linear_8xb2-40k_ade20k-512x512.py 8
"""

_base_ = [
    '../_base_/models/linear_segmentor.py',
    '../_base_/datasets/ade20k_bs2_512px.py',
    '../_base_/backbones/vit-base-p16.py',
    '../_base_/schedules/adamw_linear_40k.py',
]

model = dict(
    data_preprocessor=_base_.pixels,
    backbone=dict(_base_.backbone, img_size=512, frozen_stages=12, drop_path_rate=0.0),
)
