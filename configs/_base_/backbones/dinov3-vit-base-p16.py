"""DINOv3-B/16 (arXiv:2508.10104) and what it expects of the pixels, for dense tasks.

`dinov2-vit-base-p16.py` and `siglip2-vit-base-p16.py` beside it take its place by name. Patches of
14 pixels are resampled to 16.
"""

backbone = dict(
    _delete_=True,
    type='vit_plugin.VisionTransformer',
    arch='timm://vit_base_patch16_dinov3.lvd1689m',
    patch_embed=dict(patch_size=16),
    out_type='featmap',
    init_cfg=dict(type='Pretrained', checkpoint=True),
)
pixels = dict(mean=[123.675, 116.28, 103.53], std=[58.395, 57.12, 57.375])
