"""Resample position tables to another grid of patches, by the methods of several libraries."""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from .block_cfg import Grid

Interpolation = Literal[
    'bilinear', 'bicubic', 'bicubic_dinov2', 'bicubic_mmpretrain', 'bilinear_mmpretrain'
]
# Name -> how a table is resampled to another grid, as arguments of
# `torch.nn.functional.interpolate`.
TABLE_INTERPOLATIONS: dict[str, dict] = {
    # The authors' method, scipy.ndimage.zoom(order=1). The end points stay in place.
    'bilinear': dict(mode='bilinear', align_corners=True),
    # The method of timm and DeiT. The filter matters if the grid shrinks.
    'bicubic': dict(mode='bicubic', align_corners=False, antialias=True),
    # The method of DINOv2 without registers: no filter, and a scale as if the new side were 0.1
    # larger (facebookresearch/dinov2 `vision_transformer.py`, `interpolate_offset`).
    'bicubic_dinov2': dict(mode='bicubic', align_corners=False, offset=0.1),
    # MMPretrain's methods, without a filter (mmpretrain `embed.py`, `resize_pos_embed`).
    'bicubic_mmpretrain': dict(mode='bicubic', align_corners=False),
    'bilinear_mmpretrain': dict(mode='bilinear', align_corners=False),
}


def resize_grid(table: Tensor, old: Grid, new: Grid, interpolate_mode: str = 'bilinear') -> Tensor:
    """Resample a table (1, h*w, C) between grids (h, w). Equal grids return the table itself."""
    method = dict(TABLE_INTERPOLATIONS[interpolate_mode])
    # In an export, the new size may be dynamic: a comparison would fix it.
    if not any(isinstance(side, torch.SymInt) for side in new) and old == new:
        return table
    offset = method.pop('offset', None)
    target = dict(size=new)
    if offset is not None:
        scales = ((after + offset) / before for after, before in zip(new, old, strict=True))
        target = dict(scale_factor=tuple(scales))
    image = table.unflatten(1, old).permute(0, 3, 1, 2)  # (1, C, h, w)
    image = F.interpolate(image.float(), **target, **method)
    return image.to(table.dtype).flatten(2).transpose(1, 2)  # (1, h'*w', C)
