"""SigLIP 2 B/16's image tower (arXiv:2502.14786) and its pixel normalization, for dense tasks."""

_base_ = 'dinov3-vit-base-p16.py'

backbone = dict(arch='timm://vit_base_patch16_siglip_512.v2_webli')
pixels = dict(mean=[127.5] * 3, std=[127.5] * 3)
