"""Write a classifier as ONNX or as a torch.export archive, and compare it with the model.

    python tools/export.py configs/vit/vit-base-p16_8xb64-20k_in1k-384px.py CHECKPOINT vit-base-p16.onnx
"""

import argparse
import warnings
from pathlib import Path

import torch
from mmengine.config import DictAction

from vit_plugin.engine.export import (
    DTYPES,
    FLOAT32_TOLERANCE,
    WRITERS,
    largest_difference,
    load_deployed,
    trace,
)
from vit_plugin.engine.launch import one_sentence_errors, read_config
from vit_plugin.errors import ConfigError


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description='Write a classifier as a file that runs without the framework.')
    parser.add_argument('config', help='config file')
    parser.add_argument('checkpoint', help='checkpoint file')
    parser.add_argument('out', type=Path, help=f'file to write: {", ".join(WRITERS)}')
    parser.add_argument('--dtype', choices=DTYPES, default='float32', help='bfloat16 for .pt2, int8 for .onnx')
    size = parser.add_mutually_exclusive_group()
    size.add_argument('--size', type=int, nargs='+', metavar='PIXELS',
                      help="side of the images, or height and width; default: the backbone's img_size")
    size.add_argument('--dynamic-size', action='store_true', help='one file for all sizes of whole patches')
    parser.add_argument('--cfg-options', nargs='+', action=DictAction, metavar='KEY=VALUE',
                        help='change settings of the config')
    return parser.parse_args()


def main() -> None:
    args = parse_args()
    warnings.simplefilter('ignore')  # the exporters' own
    with one_sentence_errors():
        if not Path(args.checkpoint).is_file():
            raise ConfigError(f'There is no file {args.checkpoint!r}.')
        if args.out.suffix not in WRITERS:
            raise ConfigError(f'The file to write, {str(args.out)!r}, must end in one of {", ".join(WRITERS)}.')
        cfg = read_config(args.config, args.cfg_options)
        model = load_deployed(cfg, args.checkpoint, args.dtype)
        channels, stride = cfg.model.backbone.get('in_channels', 3), model.model.backbone.patch_embed.stride
        sides = torch.tensor(args.size or cfg.model.backbone.get('img_size', 224))
        size = None if args.dynamic_size else tuple(sides.broadcast_to(2).tolist())
        args.out.parent.mkdir(parents=True, exist_ok=True)
        run = WRITERS[args.out.suffix](trace(model, channels, size), args.out, args.dtype)
        reference = model if args.dtype != 'bfloat16' else load_deployed(cfg, args.checkpoint)
        difference = largest_difference(reference, run, channels, size)
        shape = f'{size[0]}, {size[1]}' if size else f'height and width multiples of {stride} from {2 * stride} on'
        print(f'{args.out}: images (any number, {channels}, {shape}), {args.dtype}; largest difference from '
              f'the model in float32: {difference:.1e} of its largest logit')
        if args.dtype == 'float32' and not difference <= FLOAT32_TOLERANCE:
            raise ConfigError(f'{args.out} does not compute what the model computes; do not use it.')


if __name__ == '__main__':
    main()
