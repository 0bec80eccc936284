"""Mask2Former on a frozen DINOv3-L/16 with an adapter (arXiv:2508.10104, Section 6), on ADE20K.

    tools/dist_train.sh
    configs/segmentation/dinov3-adapter-large-p16_mask2former_8xb2-160k_ade20k-512x512.py 8

The backbone and its groups are DINOv3's; head and schedule are MMSegmentation's. Not yet trained by
us.
"""

_base_ = 'mmseg::mask2former/mask2former_r50_8xb2-160k_ade20k-512x512.py'

runner_type = 'vit_plugin.Runner'
custom_hooks = [dict(type='vit_plugin.ReportHook'), dict(type='vit_plugin.ProgressHook')]
schedule_length = 160000
custom_imports = dict(imports=['vit_plugin.detection', 'mmdet.models'], allow_failed_imports=False)
model = dict(
    backbone=dict(
        _delete_=True,
        type='vit_plugin.ViTAdapter',
        interactions=(4, 11, 17, 23),
        inject=False,
        add_tokens='each',
        drop_path_rate=0.3,
        with_cp=True,
        backbone=dict(
            arch='timm://vit_large_patch16_dinov3.lvd1689m',
            img_size=512,
            frozen_stages=24,
            init_cfg=dict(type='Pretrained', checkpoint=True),
        ),
    ),
    decode_head=dict(in_channels=[1024] * 4),
)
# The adapter is new: it learns as fast as the head.
optim_wrapper = dict(paramwise_cfg=dict(custom_keys=dict(backbone=dict(lr_mult=1.0))))
