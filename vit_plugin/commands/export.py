"""Write a model as ONNX or as a torch.export archive, and compare it with the model.

vit-plugin export CHECKPOINT --out vit-base-p16.onnx
"""

import warnings
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from vit_plugin.errors import ConfigError

from .flags import a_file, add_flags, add_target, load_model

if TYPE_CHECKING:
    from vit_plugin.deploy.input_sizes import Sizes

LESS_MEMORY = 'give a smaller --img-size'


def add_arguments(parser: ArgumentParser) -> None:
    add_flags(parser, 'checkpoint', '--checkpoint', '--config', '--cfg-options')
    add_target(parser, 'file to write: .pt2 or .onnx', type=a_file('.pt2', '.onnx'))
    add_flags(
        parser,
        '--dtype',
        choices=('float32', 'float16', 'bfloat16', 'int8'),
        default='float32',
        help='bfloat16 for .pt2, float16 and int8 for .onnx',
    )
    add_flags(
        parser,
        '--img-size',
        nargs='+',
        help="side of the images, or height and width; default: the backbone's img_size",
    )
    parser.add_argument(
        '--dynamic-size', action='store_true', help='one file for all sizes of whole patches'
    )
    parser.set_defaults(arch=None, device='cpu')  # of load_model


def asked_of(args: Namespace, test: 'Sizes') -> 'Sizes':
    """The sizes of the test, or the one of ``--img-size``."""
    if not args.img_size:
        return test
    height, width = (args.img_size * 2)[:2]
    return test._replace(fixed=(height, width), of_test=test.fixed == (height, width))


def check(args: Namespace) -> None:
    """Compare what is asked for with what there is, which takes no torch."""
    if len(args.img_size or ()) > 2:
        raise ConfigError(
            f'--img-size takes one number or two, got {" ".join(map(str, args.img_size))}.'
        )


def main(args: Namespace) -> None:
    from anyfolder.complete import check_target
    from vit_plugin.deploy.deployed import deploy
    from vit_plugin.deploy.export import export
    from vit_plugin.deploy.exported_photographs import compare_photographs
    from vit_plugin.deploy.input_sizes import sizes_of_test
    from vit_plugin.deploy.pipeline_steps import facts_of

    warnings.simplefilter('ignore')  # the exporters' own
    sources = [path for path in (args.config, args.checkpoint) if path]
    check_target(args.out, sources)
    trained = load_model(args)
    model = deploy(trained.model, args.dtype)
    reference = deploy(trained.model) if args.dtype == 'bfloat16' else None
    sizes = asked_of(args, sizes_of_test(trained))
    size = None if args.dynamic_size else sizes.fixed
    if sizes.of_test and (sizes.fixed is None or any(side % model.unit for side in sizes.fixed)):
        model.unit = sizes.padding.unit  # the network fills its patches itself
    is_onnx = args.out.suffix == '.onnx'
    found: list[str] = []

    def compare(path: Path) -> None:
        if is_onnx and trained.has_pixels and 'features' not in model.outputs:
            exact = args.dtype == 'float32' and sizes.of_test
            found.append(compare_photographs(trained, path, exact))

    facts = facts_of(trained, sizes) if is_onnx else ''
    apart = export(model, args.out, size, args.dtype, reference, sources, facts, compare)
    shape = f'height and width multiples of {model.unit} from {model.least * model.unit} on'
    print(
        f'{args.out}: images (any number, {model.model.backbone.in_channels}, '
        f'{", ".join(map(str, size or [shape]))}), {args.dtype} -> {", ".join(model.outputs)}; '
        f'largest difference from the model in float32: {apart:.1e} of the largest value',
        *found,
        sep='',
    )
