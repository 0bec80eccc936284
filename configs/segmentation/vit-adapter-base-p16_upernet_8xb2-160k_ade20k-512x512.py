"""UPerNet on ViT-Adapter-B/16's pyramid (arXiv:2205.08534), on ADE20K; 160k iterations.

It follows Section 4.2 of the paper.

    tools/dist_train.sh
    configs/segmentation/vit-adapter-base-p16_upernet_8xb2-160k_ade20k-512x512.py 8
"""

_base_ = [
    'mmseg::_base_/models/upernet_r50.py',
    '../_base_/datasets/ade20k_bs2_512px.py',
    '../_base_/backbones/vit-adapter-base-p16.py',
    '../_base_/schedules/adamw_160k.py',
]

model = dict(
    data_preprocessor=dict(size=(512, 512), **_base_.pixels),
    pretrained=None,
    backbone=dict(
        _base_.backbone, add_tokens='each', backbone=dict(_base_.backbone.backbone, img_size=512)
    ),
    decode_head=dict(in_channels=[768] * 4, num_classes=150),
    auxiliary_head=dict(in_channels=768, num_classes=150),
    test_cfg=dict(mode='slide', crop_size=(512, 512), stride=(341, 341)),
)
