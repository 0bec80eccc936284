"""Write a model as ONNX or as a torch.export archive, and compare it with the model.

python tools/export.py CHECKPOINT --out vit-base-p16.onnx
"""

import argparse
import json
import warnings

from vit_plugin.apps.flags import add_flags, add_target, run_tool
from vit_plugin.errors import ConfigError


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description='Write a model as a file that runs without the framework.'
    )
    add_flags(parser, 'checkpoint', '--checkpoint', '--config', '--cfg-options')
    add_target(parser, 'file to write: .pt2 or .onnx')
    add_flags(
        parser,
        '--dtype',
        choices=('float32', 'float16', 'bfloat16', 'int8'),
        default='float32',
        help='bfloat16 for .pt2, float16 and int8 for .onnx',
    )
    size = parser.add_mutually_exclusive_group()
    add_flags(
        size,
        '--img-size',
        nargs='+',
        help="side of the images, or height and width; default: the backbone's img_size",
    )
    size.add_argument(
        '--dynamic-size', action='store_true', help='one file for all sizes of whole patches'
    )
    return parser


def main(args: argparse.Namespace) -> None:
    from vit_plugin.apps.deployed import deploy
    from vit_plugin.apps.export import WRITERS, export
    from vit_plugin.apps.exported_photographs import compare_photographs
    from vit_plugin.apps.load import load
    from vit_plugin.apps.onnx_model import facts_of
    from vit_plugin.files.complete import check_target

    warnings.simplefilter('ignore')  # the exporters' own
    if args.out.suffix not in WRITERS:
        raise ConfigError(f'--out {str(args.out)!r} must end in one of {", ".join(WRITERS)}.')
    if len(args.img_size or ()) > 2:
        raise ConfigError(
            f'--img-size wants one number or two, got {" ".join(map(str, args.img_size))}.'
        )
    sources = [path for path in (args.config, args.checkpoint) if path]
    check_target(args.out, sources)
    trained = load(
        args.checkpoint,
        args.config,
        device='cpu',
        cfg_options=args.cfg_options,
        which=args.which,
    )
    model = deploy(trained.model, args.dtype)
    reference = deploy(trained.model) if args.dtype == 'bfloat16' else None
    backbone, unit = model.model.backbone, model.unit
    fixed = tuple((args.img_size * 2)[:2]) if args.img_size else backbone.img_size

    def facts(size: tuple[int, int] | None) -> str:
        return facts_of(trained, size, unit, model.least) if args.out.suffix == '.onnx' else ''

    def write(size: tuple[int, int] | None) -> float:
        return export(model, args.out, size, args.dtype, reference, sources, facts(size))

    steps = json.loads(facts(None) or '{}').get('steps', ())
    keeps_ratio = any('unit' in step for step in steps)
    size = None if args.dynamic_size or (keeps_ratio and not args.img_size) else fixed
    note = ''
    try:
        difference = write(size)
    except ConfigError:
        if args.dynamic_size or size:
            raise
        size, note = (
            fixed,
            (
                '\nThe graph has one size, into which images of another shape are padded, so that '
                'its answers to them differ from those of the checkpoint.'
            ),
        )
        difference = write(size)
    if args.out.suffix == '.onnx' and trained.has_pixels and 'features' not in model.outputs:
        pixels, answers = compare_photographs(trained, args.out)
        note += (
            '\nOn five photographs of several shapes, its pixels differ from those of the '
            f'pipeline by up to {pixels} of 255, and its answers by up to {answers:.1%}'
        )
    shape = (
        f'{size[0]}, {size[1]}'
        if size
        else f'height and width multiples of {unit} from {model.least * unit} on'
    )
    print(
        f'{args.out}: images (any number, {backbone.in_channels}, {shape}), {args.dtype} -> '
        f'{", ".join(model.outputs)}; largest difference from the model in float32: '
        f'{difference:.1e} of the largest value{note}'
    )


if __name__ == '__main__':
    run_tool(make_parser(), main)
