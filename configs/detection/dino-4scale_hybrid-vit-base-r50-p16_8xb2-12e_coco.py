"""DINO (arXiv:2203.03605) on the pyramid of R50+B/16, on COCO; 12 epochs.

tools/dist_train.sh configs/detection/dino-4scale_hybrid-vit-base-r50-p16_8xb2-12e_coco.py 8
"""

_base_ = ['../_base_/models/dino-4scale_12e.py', '../_base_/backbones/hybrid-vit-base-r50-p16.py']

model = dict(
    data_preprocessor=_base_.pixels,
    backbone=dict(
        _base_.backbone,
        img_size=(800, 1344),
        encoder=dict(window=dict(size=14, global_blocks=(2, 5, 8, 11))),
    ),
    # DINO's four scales are strides 8 to 64: an FPN can leave out the map at stride 4, a
    # ChannelMapper cannot.
    neck=dict(
        _delete_=True,
        type='FPN',
        in_channels=[256, 512, 768],
        out_channels=256,
        start_level=1,
        add_extra_convs='on_input',
        num_outs=4,
        norm_cfg=dict(type='GN', num_groups=32),
    ),
)
