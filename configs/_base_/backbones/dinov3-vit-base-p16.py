"""DINOv3-B/16 (arXiv:2508.10104) and what it expects of the pixels, for dense tasks.

Another of timm's names is another backbone, of the same width as the heads say. DINOv2's patches of 14 pixels are
resampled to 16. For SigLIP 2 the pixels have a mean and a standard deviation of 127.5.
"""

name = 'timm://vit_base_patch16_dinov3.lvd1689m'
backbone = dict(
    _delete_=True, type='vit_plugin.VisionTransformer', arch=name, patch_embed=dict(patch_size=16), out_type='featmap',
    init_cfg=dict(type='Pretrained', checkpoint=name))
pixels = dict(mean=[123.675, 116.28, 103.53], std=[58.395, 57.12, 57.375])
