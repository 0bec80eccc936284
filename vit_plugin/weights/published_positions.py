"""Convert a third-party encoder's positions, checked against its weights, to our ``pos_embed``."""

from collections.abc import Sequence

from vit_plugin.arguments.fields import Positive, Section

from .foreign_config import ForeignConfig
from .image_kinds import OFFSETS_BIAS, POSITION_KEY, SHARED_BIAS, ImageKind
from .published import Published
from .published_encoder import height_width


def position_section(
    published: Published, kind: ImageKind, config: ForeignConfig, backbone: Section
) -> Section:
    """The ``pos_embed`` of a backbone.

    Args:
        published: the checkpoint.
        kind: the models with its ``model_type``.
        config: the config of the encoder.
        backbone: the other arguments of the backbone.

    Raises:
        ConfigError: if the config contradicts the weights, or if our backbone does not compute the
            same.
    """
    if not kind.interpolate_mode:
        return dinov3_rotary(config)
    height, width = height_width(backbone['img_size'])
    patch = backbone['arch']['patch_size']
    grid = [height // patch, width // patch]
    has_table = POSITION_KEY in published.ours
    _check_table(config, 'use_absolute_position_embeddings', has_table)
    config.check_agreement(is_native=not has_table)
    if config.may_have('is_native') and not has_table:
        return dict(type='sincos2d', endpoint=False, spread=False)
    positions: Section = dict(
        type='learned' if has_table else 'none', interpolate_mode=kind.interpolate_mode
    )
    if height != width:
        positions['source_grid'] = grid
    return positions | _relative(published, config, grid)


def _check_table(config: ForeignConfig, field: str, shown: bool) -> None:
    """Raise a ``ConfigError`` if weights have a table that transformers does not use, or lack it.

    Without the field, transformers uses no such table.

    Args:
        config: the config of the encoder.
        field: its field that says whether there is a table.
        shown: whether the weights have it.
    """
    if config.may_have(field) and config[field] != shown:
        raise config.unsupported(field, why=f'but its weights show {shown}')


def _relative(published: Published, config: ForeignConfig, grid: Sequence[int]) -> Section:
    """The relative positions in ``pos_embed``, whose table must be of this grid.

    Raises:
        ConfigError: if the table is of another grid, if there are two tables, or if the grid is not
            square, since transformers' code swaps rows and columns.
    """
    fields = dict(
        use_relative_position_bias=OFFSETS_BIAS, use_shared_relative_position_bias=SHARED_BIAS
    )
    for field, name in fields.items():
        _check_table(config, field, name in published.ours)
    tables = [name for name in fields.values() if name in published.ours]
    if not tables:
        return {}
    if len(tables) > 1:
        raise config.unsupported(*fields, why='of which ours has one')
    rows = published.shape(tables[0])[0]
    if grid[0] != grid[1]:
        why = 'whose relative positions exchange rows and columns in the code of transformers'
        raise config.unsupported('image_size', why=why)
    # A row for each offset between patches, and three for the class token: to, from and itself.
    if rows != (2 * grid[0] - 1) ** 2 + 3:
        why = f'where its table of relative positions has {rows} rows'
        raise config.unsupported('image_size', why=why)
    return dict(relative='bias' if tables == [OFFSETS_BIAS] else 'shared_bias')


def dinov3_rotary(config: ForeignConfig, field: str = 'rope_theta') -> Section:
    """The ``pos_embed`` of a DINOv3, whose wavelengths this field of the config scales."""
    base = float(config.get(field, Positive))
    return dict(type='none', rotary=dict(form='centred', planes='halves', temperature=base))
