"""What ``vit-plugin zoo`` prints: a row for each timm model, or the config of one model."""

from collections.abc import Iterable, Iterator
from typing import Any

from timm.models import get_pretrained_cfg

from vit_plugin.errors import ConfigError
from vit_plugin.project import declared_rows

from .definition import describe, pooling_of
from .names import build_on_meta

CATALOG_COLUMNS = ('name', 'width', 'blocks', 'heads', 'patch', 'size', 'parameters')


def catalog_row(name: str) -> tuple[str, ...]:
    """The row of a timm model, with ``CATALOG_COLUMNS``.

    Only the parameters of the backbone are counted, without pooling and classifier.

    Raises:
        ConfigError: if our backbone cannot compute the same as timm's model.
    """
    arguments = describe(name)
    parameters = sum(
        parameter.numel()
        for key, parameter in build_on_meta(name).named_parameters()
        if not key.startswith(('head', 'fc_norm', 'attn_pool'))
    )
    size = arguments['arguments']['img_size']
    return (
        name,
        *(str(arguments[key]) for key in ('embed_dims', 'num_layers', 'num_heads')),
        str(read_stride(name)),
        str(size) if isinstance(size, int) else f'{size[0]} x {size[1]}',
        f'{parameters:,}',
    )


def read_stride(name: str) -> int:
    """The distance in pixels from one token to the next."""
    stem = build_on_meta(name).patch_embed
    return stem.img_size[0] // stem.grid_size[0]


def catalog_config(name: str) -> dict[str, dict[str, Any]]:
    """The sections of a model's config, with every argument of the backbone spelled out.

    They are ``backbone``; ``neck`` if timm pools with a norm or attention; and for a name with the
    tag of its weights also their ``data_preprocessor`` and the ``init_cfg`` that loads them.

    Raises:
        ConfigError: see :func:`catalog_row`.
    """
    arguments = describe(name)
    options = arguments.pop('arguments')
    patch_embed = arguments.pop('patch_embed')
    backbone = dict(
        type='vit_plugin.VisionTransformer', arch=arguments, patch_embed=patch_embed, **options
    )
    components = dict(backbone=backbone)
    if pooling := pooling_of(name):
        backbone['out_type'], components['neck'] = pooling
    if '.' in name:
        backbone['init_cfg'] = dict(type='Pretrained', checkpoint=f'timm://{name}')
        components['data_preprocessor'] = pretrained_pixels(name)
    return components


def detector_lines() -> dict[str, str]:
    """For each published detector, a line with its name, license, image side and URL."""
    offered = declared_rows('offered')
    width = max(map(len, offered), default=0) + 2
    return {
        name: f'{name:<{width}}{license:<14}{side:>6}  {url}'
        for name, (license, side, url) in offered.items()
    }


def pretrained_pixels(name: str) -> dict[str, list[float]]:
    """Pixel mean and standard deviation (0 to 255) that the weights with this name expect."""
    cfg = get_pretrained_cfg(name)
    return {key: [round(255 * value, 4) for value in getattr(cfg, key)] for key in ('mean', 'std')}


def catalog_lines(names: Iterable[str]) -> Iterator[str]:
    """The list as text, with the reason for each model that is not supported."""
    row_format = '{:<50}' + '{:>8}' * 4 + '{:>12}{:>16}'
    yield row_format.format(*CATALOG_COLUMNS)
    for name in names:
        try:
            yield row_format.format(*catalog_row(name))
        except ConfigError as error:
            yield f'{name:<50} not supported: {error}'


def license_lines(names: Iterable[str]) -> Iterator[str]:
    """A line for each name of weights, with its license as timm states it."""
    return (
        f'{name:<66}{getattr(get_pretrained_cfg(name), "license", None) or "not stated"}'
        for name in names
    )
