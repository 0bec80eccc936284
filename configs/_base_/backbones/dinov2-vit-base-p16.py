"""DINOv2-B with registers (arXiv:2304.07193, 2309.16588) and its normalization, for dense tasks."""

_base_ = 'dinov3-vit-base-p16.py'

backbone = dict(arch='timm://vit_base_patch14_reg4_dinov2.lvd142m')
