"""DINOv3's ConvNeXt-T (arXiv:2508.10104) and what it expects of the pixels, for dense tasks.

The larger ones are `convnext_small`, `convnext_base` and `convnext_large` in its name. Maps have
96, 192, 384 and 768 channels at strides 4 to 32; 128 to 1024 of the base, 192 to 1536 of the large.
"""

backbone = dict(
    _delete_=True,
    type='vit_plugin.TimmBackbone',
    model_name='convnext_tiny.dinov3_lvd1689m',
    out_type='pyramid',
    init_cfg=dict(type='Pretrained', checkpoint=True),
)
pixels = dict(mean=[123.675, 116.28, 103.53], std=[58.395, 57.12, 57.375])
