"""PMT on a frozen DINOv3-L/16 (arXiv:2603.25398), on ADE20K; 20k iterations of 16 images.

    tools/dist_train.sh configs/segmentation/dinov3-vit-large-p16_pmt_8xb2-20k_ade20k-512x512.py 8

Decoder, annealing and rate are those of the authors (tue-mps/pmt, image/configs/ade20k/semantic),
who publish 58.5 mIoU; crops and length are those of our recipe of EoMT.
"""

_base_ = 'dinov3-vit-large-p16_eomt_8xb2-20k_ade20k-512x512.py'

custom_hooks = [
    *_base_.custom_hooks[:-1],
    dict(
        type='vit_plugin.MaskAnnealingHook',
        begin=(0.0, 0.27, 0.37, 0.47, 0.57, 0.67),
        end=(0.15, 0.43, 0.53, 0.63, 0.73, 0.83),
    ),
]
model = dict(
    backbone=dict(type='vit_plugin.PMT', frozen_stages=24, num_blocks=6, feedforward_channels=1024)
)
param_scheduler = [
    dict(type='LinearLR', start_factor=1e-3, end=6000, by_epoch=False),
    dict(type='CosineAnnealingLR', eta_min=0.0, begin=6000, by_epoch=False),
]
