"""List timm's Vision Transformers usable as backbones by name, published detectors, or a config.

vit-plugin zoo 'eva02*'
vit-plugin zoo '*dinov3*' --licenses
vit-plugin zoo --detectors
vit-plugin zoo vit_base_patch16_dinov3.lvd1689m --as-config
"""

import warnings
from argparse import ArgumentParser, Namespace
from fnmatch import fnmatch

from vit_plugin.errors import ConfigError


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        'pattern',
        nargs='?',
        default='*',
        metavar='NAME',
        help="a name, or a pattern such as 'eva02*'; default: all",
    )
    parser.add_argument(
        '--pretrained',
        action='store_true',
        help='list the names of weights, with the tag after the dot',
    )
    parser.add_argument(
        '--licenses',
        '--licences',
        action='store_true',
        help='list the names of weights with their licenses',
    )
    parser.add_argument(
        '--as-config',
        action='store_true',
        help='print the backbone of one name as a config, with every argument; or the model of a '
        'folder or hf://ORG/NAME',
    )
    parser.add_argument(
        '--detectors',
        action='store_true',
        help='list published detectors, with their licenses, the side of their images in pixels, '
        'and where their weights are; commands take the names too',
    )


def main(args: Namespace) -> None:
    from mmengine.config import Config

    from vit_plugin.weights.hub_files import weights_in
    from vit_plugin.zoo.catalog import catalog_config, catalog_lines, detector_lines, license_lines
    from vit_plugin.zoo.names import names

    warnings.simplefilter('ignore')  # timm warns about tags
    pattern = args.pattern.removeprefix('timm://')
    if args.pattern.startswith('hf://') or weights_in(args.pattern):
        print(_describe_hub_model(args.pattern, args.as_config), end='')
        return
    if args.as_config:
        print(Config(catalog_config(pattern)).pretty_text, end='')
        return
    published = detector_lines() if args.detectors else {}
    has_tags = args.pretrained or args.licenses or '.' in pattern  # only tags have dots
    matching = [name for name in published or names(pretrained=has_tags) if fnmatch(name, pattern)]
    if not matching:
        raise ConfigError(
            f'No name matches {args.pattern!r}; try a pattern such as vit_base* or *dinov3*.'
        )
    if args.detectors:
        for name in matching:
            print(published[name])
        return
    for line in license_lines(matching) if args.licenses else catalog_lines(matching):
        print(line, flush=True)


def _describe_hub_model(source: str, as_config: bool) -> str:
    """The model in a folder of a hub, or at ``hf://ORG/NAME``, as the text of a config.

    Raises:
        ConfigError: without ``--as-config``, or if there is no model.
    """
    from mmengine.config import Config

    from vit_plugin.inference.saved_model import open_model

    if not as_config:
        raise ConfigError(
            f'{source!r} is one model; add --as-config to print it, or ask it with vit-plugin '
            'infer or embed.'
        )
    model = open_model(source).cfg.model
    model.backbone.init_cfg = dict(type='Pretrained', checkpoint=source)
    return Config(dict(model=model)).pretty_text
