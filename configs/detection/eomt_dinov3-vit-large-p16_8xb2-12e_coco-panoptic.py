"""EoMT on DINOv3-L/16 (arXiv:2503.19108), fine-tuned on COCO's panoptic masks at 640 px; 12 epochs.

    tools/dist_train.sh configs/detection/eomt_dinov3-vit-large-p16_8xb2-12e_coco-panoptic.py 8

Queries, annealing, rate and length are those of the authors (tue-mps/eomt,
configs/dinov3/coco/panoptic), who publish 56.8 PQ; one warm-up takes the place of two. It needs
panopticapi.
"""

_base_ = ['../_base_/datasets/coco-panoptic_bs2_lsj-640px.py', '../_base_/schedules/adamw_12e.py']

custom_hooks = [
    *_base_.custom_hooks,
    dict(
        type='vit_plugin.MaskAnnealingHook',
        begin=(0.0, 0.33, 0.5, 0.67),
        end=(0.03, 0.5, 0.67, 0.83),
    ),
]
classes = dict(num_things_classes=80, num_stuff_classes=53)
model = dict(
    type='Mask2Former',
    data_preprocessor=dict(
        type='DetDataPreprocessor',
        bgr_to_rgb=True,
        pad_size_divisor=640,
        pad_mask=True,
        mask_pad_value=0,
        pad_seg=True,
        seg_pad_value=255,
        mean=[123.675, 116.28, 103.53],
        std=[58.395, 57.12, 57.375],
    ),
    backbone=dict(
        type='vit_plugin.EoMT',
        arch='timm://vit_large_patch16_dinov3.lvd1689m',
        img_size=640,
        num_classes=133,
        num_queries=200,
        num_blocks=4,
        init_cfg=dict(type='Pretrained', checkpoint=True),
    ),
    panoptic_head=dict(type='vit_plugin.EoMTHead', **classes),
    panoptic_fusion_head=dict(
        type='MaskFormerFusionHead', loss_panoptic=None, init_cfg=None, **classes
    ),
    test_cfg=dict(
        panoptic_on=True,
        semantic_on=False,
        instance_on=False,
        iou_thr=0.8,
        filter_low_score=True,
        object_mask_thr=0.8,
    ),
)
optim_wrapper = dict(
    type='vit_plugin.AmpOptimWrapper',
    optimizer=dict(lr=2e-4),
    clip_grad=dict(max_norm=0.01),
    constructor='vit_plugin.LayerDecayOptimWrapperConstructor',
    paramwise_cfg=dict(layer_decay_rate=0.8),
)
param_scheduler = [
    dict(type='LinearLR', start_factor=1e-3, end=1, convert_to_iter_based=True),
    dict(type='PolyLR', power=0.9, eta_min=0.0, begin=1, convert_to_iter_based=True),
]
auto_scale_lr = dict(base_batch_size=16)
