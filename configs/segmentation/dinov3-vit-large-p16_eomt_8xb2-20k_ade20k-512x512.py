"""EoMT on DINOv3-L/16 (arXiv:2503.19108), fine-tuned on ADE20K; 20k iterations of 16 images.

    tools/dist_train.sh configs/segmentation/dinov3-vit-large-p16_eomt_8xb2-20k_ade20k-512x512.py 8

Queries, annealing, rate and length are those of the authors (tue-mps/eomt,
configs/dinov3/ade20k/semantic), who publish 59.5 mIoU; the crops are MMSegmentation's, and one
warm-up takes the place of two.
"""

_base_ = ['../_base_/datasets/ade20k_bs2_512px.py', '../_base_/schedules/adamw_160k.py']

custom_imports = dict(imports=['vit_plugin.detection'])  # the losses are MMDetection's
custom_hooks = [
    *_base_.custom_hooks,
    dict(
        type='vit_plugin.MaskAnnealingHook',
        begin=(0.0, 0.32, 0.48, 0.65),
        end=(0.15, 0.48, 0.65, 0.81),
    ),
]
model = dict(
    type='EncoderDecoder',
    data_preprocessor=dict(
        type='SegDataPreProcessor',
        bgr_to_rgb=True,
        size=(512, 512),
        pad_val=0,
        seg_pad_val=255,
        mean=[123.675, 116.28, 103.53],
        std=[58.395, 57.12, 57.375],
    ),
    backbone=dict(
        type='vit_plugin.EoMT',
        arch='timm://vit_large_patch16_dinov3.lvd1689m',
        img_size=512,
        num_classes=150,
        num_queries=100,
        num_blocks=4,
        init_cfg=dict(type='Pretrained', checkpoint=True),
    ),
    decode_head=dict(type='vit_plugin.EoMTDecodeHead', num_classes=150),
    train_cfg=dict(),
    test_cfg=dict(mode='slide', crop_size=(512, 512), stride=(341, 341)),
)
optim_wrapper = dict(
    type='vit_plugin.AmpOptimWrapper',
    optimizer=dict(lr=2e-4),
    clip_grad=dict(_delete_=True, max_norm=0.01),
    paramwise_cfg=dict(layer_decay_rate=0.8),
)
param_scheduler = [
    dict(type='LinearLR', start_factor=1e-3, end=2000, by_epoch=False),
    dict(type='PolyLR', power=0.9, eta_min=0.0, begin=2000, by_epoch=False),
]
schedule_length = 20000
train_cfg = dict(max_iters=20000, val_interval=2000)
default_hooks = dict(checkpoint=dict(interval=2000))
