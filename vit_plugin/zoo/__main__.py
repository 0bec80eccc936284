"""List timm's Vision Transformers that are a backbone by their name, or print one as a config."""

import argparse
import sys
import warnings
from collections.abc import Sequence
from fnmatch import fnmatch
from typing import Any

from mmengine.config import Config

from vit_plugin.errors import ConfigError

from .definition import describe
from .names import find, names

COLUMNS = ('name', 'width', 'blocks', 'heads', 'patch', 'size', 'parameters')


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


def config_of(name: str) -> dict[str, Any]:
    """The backbone of a config, spelt out. A name of weights gives the line that loads them too."""
    arguments = describe(name)
    rest = arguments.pop('arguments')
    patch_embed = arguments.pop('patch_embed')
    backbone = dict(type='vit_plugin.VisionTransformer', arch=arguments, patch_embed=patch_embed, **rest)
    if '.' in name:
        backbone['init_cfg'] = dict(type='Pretrained', checkpoint=f'timm://{name}')
    return backbone


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog='python -m vit_plugin.zoo', description=__doc__)
    parser.add_argument('pattern', nargs='?', default='*', help="names to list, such as 'eva02*'; default: all")
    parser.add_argument('--weights', action='store_true', help='list the names of weights, with the tag after the dot')
    parser.add_argument('--config', metavar='NAME', help='print the backbone of this name, with every argument')
    args = parser.parse_args(argv)
    warnings.simplefilter('ignore')  # of timm, about tags
    try:
        if args.config:
            print(Config(dict(backbone=config_of(args.config.removeprefix('timm://')))).pretty_text, end='')
            return 0
        known = [name for name in names(pretrained=args.weights) if fnmatch(name, args.pattern)]
        if not known:
            raise ConfigError(f'No name fits {args.pattern!r}; patterns are such as vit_base* or *dinov3*.')
        print(('{:<50}' + '{:>8}' * 4 + '{:>12}{:>16}').format(*COLUMNS))
        for name in known:
            print(line_of(name), flush=True)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def line_of(name: str) -> str:
    """A line of the list. For a model that is refused, the reason."""
    try:
        return ('{:<50}' + '{:>8}' * 4 + '{:>12}{:>16}').format(*row_of(name))
    except ConfigError as error:
        return f'{name:<50} refused: {error}'


if __name__ == '__main__':
    sys.exit(main())
