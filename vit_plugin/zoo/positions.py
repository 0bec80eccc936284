"""Convert the positions of timm's models to our ``pos_embed``."""

from timm import layers
from timm.layers.pos_embed_sincos import RotaryEmbeddingMixed
from timm.models.beit import Beit
from timm.models.eva import Eva
from torch import nn

from vit_plugin.arguments.fields import Section


def convert_positions(model: nn.Module) -> Section:
    """The ``pos_embed`` of a model.

    Raises:
        ValueError: if its positions are of an unknown kind.
    """
    cfg: Section = dict(type='none')
    if model.pos_embed is not None:
        cfg = dict(type='learned', interpolate_mode='bicubic')
        if not isinstance(model, Beit) and model.no_embed_class and model.num_prefix_tokens:
            cfg['prefix_rows'] = False
    if isinstance(model, Beit):
        return dict(cfg, **_relative(model))
    if not isinstance(model, Eva) or model.rope is None:
        return cfg
    return dict(cfg, rotary=convert_rotary(model.rope))


def _relative(model: Beit) -> Section:
    """The relative positions of a BEiT: a table for all blocks, one for each, or none.

    Raises:
        ValueError: if there are both.
    """
    separate = model.blocks[0].attn.relative_position_bias_table is not None
    shared = model.rel_pos_bias is not None
    if separate and shared:
        raise ValueError('its blocks have relative positions of two kinds')
    return dict(relative='shared_bias' if shared else 'bias') if separate or shared else {}


def convert_rotary(rope: nn.Module) -> Section:
    """The ``rotary`` of timm's rotary positions, as entries of our ``RotaryOptions``.

    Raises:
        ValueError: if they are of an unknown kind.
    """
    coordinates: Section = {}
    match rope:
        case RotaryEmbeddingMixed():
            form, halves = 'mixed', False
        case layers.RotaryEmbeddingDinoV3() if (
            rope.temperature and rope.normalize_coords == 'separate'
        ):
            form, halves, coordinates = 'centred', rope.rotate_half, dict(offset=rope.grid_offset)
        case layers.RotaryEmbeddingCat() if rope.grid_type == 'index' and not rope.in_pixels:
            form, halves = 'index', rope.rotate_half
            coordinates = dict(offset=rope.grid_offset, native_grid=rope.ref_feat_shape)
        case _:
            raise ValueError(f'its rotary positions ({type(rope).__name__}) are not known')
    coordinates |= dict(
        shift=rope.shift_coords, jitter=rope.jitter_coords, rescale=rope.rescale_coords
    )
    return dict(
        form=form,
        temperature=float(rope.temperature),
        order='yx' if rope.grid_indexing == 'ij' else 'xy',
        planes='halves' if halves else 'neighbours',
        **{name: value for name, value in coordinates.items() if value},
    )
