"""Positions of timm's models as our ``pos_embed``."""

from typing import Any

from timm import layers
from timm.layers.pos_embed_sincos import RotaryEmbeddingMixed
from torch import nn


def positions_of(model: nn.Module) -> dict[str, Any]:
    """The ``pos_embed`` of a model.

    Raises:
        ValueError: if its positions are of another kind.
    """
    cfg: dict[str, Any] = dict(type='none')
    if model.pos_embed is not None:
        cfg = dict(type='learned', interpolate_mode='bicubic')
        if model.no_embed_class and model.num_prefix_tokens:
            cfg['prefix_rows'] = False
    rope = getattr(model, 'rope', None)
    return cfg if rope is None else dict(cfg, rotary=rotary_of(rope))


def rotary_of(rope: nn.Module) -> dict[str, Any]:
    """The ``rotary`` of timm's rotary positions.

    Raises:
        ValueError: if they are of another kind.
    """
    cfg: dict[str, Any]
    match rope:
        case RotaryEmbeddingMixed():
            cfg = dict(form='mixed')
        case layers.RotaryEmbeddingDinoV3() if rope.temperature and rope.normalize_coords == 'separate':
            cfg = dict(form='centred')
        case layers.RotaryEmbeddingCat() if rope.grid_type == 'index' and not rope.in_pixels:
            cfg = dict(form='index')
        case _:
            raise ValueError(f'its rotary positions ({type(rope).__name__}) are not known')
    cfg |= dict(temperature=float(rope.temperature), order='yx' if rope.grid_indexing == 'ij' else 'xy',
                planes='halves' if getattr(rope, 'rotate_half', False) else 'neighbours')
    others = dict(offset=getattr(rope, 'grid_offset', 0.), shift=rope.shift_coords, jitter=rope.jitter_coords,
                  rescale=rope.rescale_coords, native_grid=getattr(rope, 'ref_feat_shape', None))
    return cfg | {name: value for name, value in others.items() if value}
