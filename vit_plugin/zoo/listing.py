"""What the list of names says of each, and what a config needs of it."""

from collections.abc import Iterable, Iterator
from typing import Any

import timm
from timm.models import get_pretrained_cfg

from vit_plugin.errors import ConfigError

from .definition import describe, pooled
from .names import find

COLUMNS = ('name', 'width', 'blocks', 'heads', 'patch', 'size', 'parameters')
PAGE = """# timm's checkpoints, by name

Written by `vit-plugin zoo --markdown`, from timm {version}. A name and one of its tags are an `arch` and a
checkpoint, such as `timm://vit_base_patch16_dinov3.lvd1689m`:

```python
backbone = dict(type='vit_plugin.VisionTransformer', arch='timm://NAME.TAG',
                init_cfg=dict(type='Pretrained', checkpoint=True))
```

Patch and size are in pixels. The parameters are those of the backbone. The licence stands behind the tags that it
covers; some licences allow research only. Each heading is the `data_preprocessor` of the names below it.
[Weights](weights.md) has other sources, and published results."""


def row_of(name: str) -> tuple[str, ...]:
    """A row of the list: the entries of ``COLUMNS``. The parameters are those of the backbone.

    Raises:
        ConfigError: if our backbone cannot compute the same as timm's model.
    """
    arguments = describe(name)
    parameters = sum(parameter.numel() for part, parameter in find(name).named_parameters()
                     if not part.startswith(('head', 'fc_norm', 'attn_pool')))
    size = arguments['arguments']['img_size']
    return (name, *(str(arguments[key]) for key in ('embed_dims', 'num_layers', 'num_heads')),
            str(stride_of(name)), str(size) if isinstance(size, int) else f'{size[0]} x {size[1]}', f'{parameters:,}')


def stride_of(name: str) -> int:
    """Pixels from one token to the next."""
    stem = find(name).patch_embed
    return stem.img_size[0] // stem.grid_size[0]


def config_of(name: str) -> dict[str, dict[str, Any]]:
    """The backbone of a config, spelt out, and the neck if timm's model has a norm or attention in its pooling.

    A name of weights gives the line that loads them too, and what they expect of the pixels.

    Raises:
        ConfigError: see :func:`row_of`.
    """
    arguments = describe(name)
    rest = arguments.pop('arguments')
    patch_embed = arguments.pop('patch_embed')
    backbone = dict(type='vit_plugin.VisionTransformer', arch=arguments, patch_embed=patch_embed, **rest)
    parts = dict(backbone=backbone)
    if pooling := pooled(name):
        backbone['out_type'], parts['neck'] = pooling
    if '.' in name:
        backbone['init_cfg'] = dict(type='Pretrained', checkpoint=f'timm://{name}')
        parts['data_preprocessor'] = pixels_of(name)
    return parts


def pixels_of(name: str) -> dict[str, list[float]]:
    """Mean and standard deviation of the pixels from 0 to 255, as a name of weights expects them."""
    cfg = get_pretrained_cfg(name)
    return {key: [round(255 * value, 4) for value in getattr(cfg, key)] for key in ('mean', 'std')}


def lines(names: Iterable[str]) -> Iterator[str]:
    """The list as text. For a model that is not supported, the reason."""
    form = '{:<50}' + '{:>8}' * 4 + '{:>12}{:>16}'
    yield form.format(*COLUMNS)
    for name in names:
        try:
            yield form.format(*row_of(name))
        except ConfigError as error:
            yield f'{name:<50} not supported: {error}'


def licence_of(name: str) -> str:
    """The licence of a name of weights, as timm says it."""
    return getattr(get_pretrained_cfg(name), 'license', None) or 'not stated'


def licences(names: Iterable[str]) -> Iterator[str]:
    """A line for each name of weights, with its licence."""
    return (f'{name:<66}{licence_of(name)}' for name in names)


def markdown(names: Iterable[str]) -> Iterator[str]:
    """The page of these names of weights, by the pixels that they expect and by model."""
    yield PAGE.format(version=timm.__version__)
    groups: dict[str, dict[tuple[str, ...], dict[str, list[str]]]] = {}
    others = []
    for name in names:
        model, _, tag = name.partition('.')
        try:
            _, *cells = row_of(name)
        except ConfigError:
            others.append(name)
            continue
        pixels = ', '.join(f'{key}={value}' for key, value in pixels_of(name).items())
        row = groups.setdefault(pixels, {}).setdefault((model, *cells), {})
        row.setdefault(licence_of(name), []).append(f'`{tag}`')
    for pixels, rows in groups.items():
        yield f'\n## `dict({pixels})`\n'
        yield '| ' + ' | '.join((*COLUMNS, 'tags, licence')) + ' |\n|---' + '|--:' * (len(COLUMNS) - 1) + '|---|'
        for (model, *cells), tags in rows.items():
            licensed = '; '.join(f'{", ".join(members)}: {licence}' for licence, members in tags.items())
            yield '| ' + ' | '.join((f'`{model}`', *cells, licensed)) + ' |'
    if others:
        yield '\n## Only by `TimmBackbone`\n'
        yield 'Their blocks are not those of the paper: [any other timm model](migration.md#any-other-timm-model).\n'
        yield ', '.join(f'`{name}`' for name in others) + '.'
