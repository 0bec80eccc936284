"""UPerNet on four depths of B/16, on ADE20K; 160k iterations.

tools/dist_train.sh configs/segmentation/vit-base-p16_upernet_8xb2-160k_ade20k-512x512.py 8
"""

_base_ = [
    'mmseg::_base_/models/upernet_vit-b16_ln_mln.py',
    '../_base_/datasets/ade20k_bs2_512px.py',
    '../_base_/backbones/vit-base-p16.py',
    '../_base_/schedules/adamw_160k.py',
]

model = dict(
    data_preprocessor=dict(size=(512, 512), **_base_.pixels),
    pretrained=None,
    backbone=dict(_base_.backbone, img_size=512, out_indices=(2, 5, 8, 11)),
    decode_head=dict(num_classes=150),
    auxiliary_head=dict(num_classes=150),
    test_cfg=dict(mode='slide', crop_size=(512, 512), stride=(341, 341)),
)
