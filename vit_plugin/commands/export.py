"""Write a model as ONNX or as a torch.export archive, and compare it with the model.

vit-plugin export CHECKPOINT --out vit-base-p16.onnx
"""

import argparse
import warnings
from pathlib import Path

from vit_plugin.errors import ConfigError

from .flags import add_flags, add_target, load_model


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
    parser.set_defaults(arch=None, device='cpu')  # of load_model
    return parser


def main(args: argparse.Namespace) -> None:
    from vit_plugin.deploy.deployed import deploy
    from vit_plugin.deploy.export import WRITERS, export
    from vit_plugin.deploy.exported_photographs import compare_photographs
    from vit_plugin.deploy.input_sizes import sizes_of_test
    from vit_plugin.deploy.onnx_model import facts_of
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
    trained = load_model(args)
    model = deploy(trained.model, args.dtype)
    reference = deploy(trained.model) if args.dtype == 'bfloat16' else None
    backbone, test = model.model.backbone, sizes_of_test(trained)
    sizes = test
    if args.img_size:
        height, width = (args.img_size * 2)[:2]
        sizes = test._replace(fixed=(height, width), of_test=test.fixed == (height, width))
    size = None if args.dynamic_size else sizes.fixed
    if sizes.of_test and (sizes.fixed is None or any(side % model.unit for side in sizes.fixed)):
        model.unit = sizes.padding.unit  # the network fills its patches itself
    is_onnx = args.out.suffix == '.onnx'
    found: list[str] = []

    def compare(path: Path) -> None:
        if is_onnx and trained.has_pixels and 'features' not in model.outputs:
            exact = args.dtype == 'float32' and sizes.of_test
            found.append(compare_photographs(trained, path, exact))

    difference = export(
        model,
        args.out,
        size,
        args.dtype,
        reference,
        sources,
        facts_of(trained, sizes) if is_onnx else '',
        compare,
    )
    shape = (
        f'{size[0]}, {size[1]}'
        if size
        else f'height and width multiples of {model.unit} from {model.least * model.unit} on'
    )
    print(
        f'{args.out}: images (any number, {backbone.in_channels}, {shape}), {args.dtype} -> '
        f'{", ".join(model.outputs)}; largest difference from the model in float32: '
        f'{difference:.1e} of the largest value' + ''.join(found)
    )
