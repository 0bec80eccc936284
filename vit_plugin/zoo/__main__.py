"""List timm's Vision Transformers that are a backbone by their name, or print one as a config."""

import argparse
import sys
import warnings
from collections.abc import Sequence
from fnmatch import fnmatch

from mmengine.config import Config

from vit_plugin.errors import ConfigError

from .listing import config_of, lines, markdown
from .names import names


def main(argv: Sequence[str] | None = None) -> int:
    """Print what is asked for. Returns 1 if there is no such name."""
    as_module = sys.argv[0].endswith('__main__.py')
    parser = argparse.ArgumentParser(prog='python -m vit_plugin.zoo' if as_module else None, description=__doc__)
    parser.add_argument('pattern', nargs='?', default='*', help="names to list, such as 'eva02*'; default: all")
    parser.add_argument('--weights', action='store_true', help='list the names of weights, with the tag after the dot')
    parser.add_argument('--markdown', action='store_true', help='with --weights: the list as docs/checkpoints.md')
    parser.add_argument('--config', metavar='NAME', help='print the backbone of this name, with every argument')
    args = parser.parse_args(argv)
    if args.markdown and not args.weights:
        parser.error('--markdown needs --weights')
    warnings.simplefilter('ignore')  # of timm, about tags
    try:
        if args.config:
            print(Config(config_of(args.config.removeprefix('timm://'))).pretty_text, end='')
            return 0
        known = [name for name in names(pretrained=args.weights) if fnmatch(name, args.pattern)]
        if not known:
            raise ConfigError(f'No name fits {args.pattern!r}; patterns are such as vit_base* or *dinov3*.')
        for line in markdown(known) if args.markdown else lines(known):
            print(line, flush=True)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
