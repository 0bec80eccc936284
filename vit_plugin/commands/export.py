"""Write a model as ONNX, for OpenVINO or as a torch.export archive, and compare it with the model.

vit-plugin export CHECKPOINT --out vit-base-p16.onnx
"""

import time
import warnings
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from vit_plugin.errors import ConfigError

from .flags import a_file, add_flags, add_target, load_model

if TYPE_CHECKING:
    from vit_plugin.deploy.deployed_module import Deployed
    from vit_plugin.deploy.input_sizes import InputSizes, Padding
    from vit_plugin.deploy.pipeline_steps import PipelineStep
    from vit_plugin.inference.trained_model import TrainedModel
    from vit_plugin.weights.provenance import Provenance

# Advice if memory runs out, see commands/__init__.py.
LESS_MEMORY = 'give a smaller --img-size'
ONE_SIZE_NOTE = (
    '\nThe file takes images of one size, that of the training: an image of another shape is '
    'resized to fit and padded, and may get other answers. --dynamic writes a file for all sizes.'
)


def add_arguments(parser: ArgumentParser) -> None:
    add_flags(parser, 'checkpoint', '--checkpoint', '--config', '--cfg-options')
    add_target(
        parser,
        'file to write: .pt2, .onnx, or .xml with a .bin for OpenVINO',
        type=a_file('.pt2', '.onnx', '.xml'),
    )
    add_flags(
        parser,
        '--dtype',
        choices=('float32', 'float16', 'bfloat16', 'int8'),
        default='float32',
        help='bfloat16 for .pt2, float16 for .onnx and .xml, int8 for .onnx',
    )
    add_flags(
        parser,
        '--img-size',
        nargs='+',
        help="side of the images, or height and width; default: the backbone's img_size",
    )
    parser.add_argument(
        '--dynamic',
        nargs='?',
        const='all',
        choices=('batch', 'all'),
        help='one file for any number of images (batch), also of all sizes that the model takes; '
        'default: one image of one size',
    )
    parser.set_defaults(arch=None, device='cpu')  # for load_model


def choose_sizes(
    args: Namespace, trained: 'TrainedModel', steps: 'Sequence[PipelineStep]'
) -> 'InputSizes':
    """The sizes to export for: ``--img-size``, else the test pipeline's.

    If the pipeline yields images of several sizes and the file takes only one, it is the size of
    the training images.

    Args:
        args: the command line.
        trained: the model.
        steps: the steps of the test pipeline, see
            :func:`~vit_plugin.deploy.pipeline_steps.pixel_steps_of`; empty for a ``.pt2``.
    """
    from vit_plugin.deploy.input_sizes import sizes_of_test
    from vit_plugin.deploy.sized_steps import size_of_training

    test = sizes_of_test(trained)
    if args.img_size:
        height, width = args.img_size[0], args.img_size[-1]  # one number is the side of a square
        check_padded('--img-size', (height, width), test.padding)
        size = (height, width)
        return test._replace(fixed_size=size, from_test_pipeline=test.fixed_size == size)
    if test.fixed_size or args.dynamic == 'all':
        return test
    size = size_of_training(steps, test, trained.model)
    return test._replace(fixed_size=size, from_test_pipeline=False)


def check_padded(flag: str, size: tuple[int, int], padding: 'Padding') -> None:
    """Check that a size is one to which the model's images are padded.

    Raises:
        ConfigError: if it is not, with the next larger size that is.
    """
    if size != padding.padded_size(size):
        raise ConfigError(
            f'{flag} {size[0]} {size[1]}: the images of this model are padded to multiples of '
            f'{padding.unit}, of at least {padding.min_size[0]} x {padding.min_size[1]} pixels; '
            f'give {flag} {" ".join(map(str, padding.padded_size(size)))}.'
        )


@contextmanager
def timed_stage(name: str) -> Iterator[None]:
    """Print a stage of the export, and how long it took."""
    print(f'{name} ...', end=' ', flush=True)
    start = time.perf_counter()
    yield
    print(f'{time.perf_counter() - start:.0f} s', flush=True)


def check(args: Namespace) -> None:
    """Check the number of sides, without importing torch."""
    if len(args.img_size or ()) > 2:
        raise ConfigError(
            f'--img-size takes one number or two, got {" ".join(map(str, args.img_size))}.'
        )


def main(args: Namespace) -> None:
    from anyfolder.complete import check_target
    from vit_plugin.deploy.deployed import deploy
    from vit_plugin.deploy.export import export
    from vit_plugin.deploy.export_facts import facts_of
    from vit_plugin.deploy.exported_photographs import compare_photographs
    from vit_plugin.deploy.pipeline_steps import pixel_steps_of
    from vit_plugin.deploy.runtimes import RUNTIMES

    warnings.simplefilter('ignore')  # the exporters warn about themselves
    sources = [path for path in (args.config, args.checkpoint) if path]
    check_target(args.out, sources)
    trained = load_model(args)
    model = deploy(trained.model, args.dtype)
    # A .pt2 has no metadata about its inputs and outputs ("facts"), and takes preprocessed images.
    has_facts = args.out.suffix in RUNTIMES
    steps = pixel_steps_of(trained) if has_facts else []
    sizes = choose_sizes(args, trained, steps)
    size = None if args.dynamic == 'all' else sizes.fixed_size
    set_unit(model, sizes)
    photograph_summaries: list[str] = []

    def compare(path: Path) -> None:
        if has_facts and trained.has_pixels and 'features' not in model.outputs:
            must_agree = args.dtype == 'float32' and sizes.from_test_pipeline
            photograph_summaries.append(compare_photographs(trained, path, must_agree))

    difference = export(
        model,
        args.out,
        size,
        dtype=args.dtype,
        # deploy() converts the model itself to bfloat16, and other dtypes only change the file.
        reference=deploy(trained.model) if args.dtype == 'bfloat16' else None,
        sources=sources,
        facts=facts_of(trained, sizes, steps) if has_facts else '',
        record=export_record(args),
        check=compare,
        batch=None if args.dynamic else 1,  # None: any number of images
        stage=timed_stage,
    )
    summary = export_summary(args, model, size, difference)
    takes_one_size = size is not None and not (sizes.from_test_pipeline or args.img_size)
    note = ONE_SIZE_NOTE if takes_one_size else ''
    print(summary, *photograph_summaries, note, sep='')


def set_unit(model: 'Deployed', sizes: 'InputSizes') -> None:
    """Let a file take the sizes of a test pipeline that are no multiples of the stride.

    The network pads such images to its patches itself.
    """
    if sizes.from_test_pipeline and (
        sizes.fixed_size is None or any(side % model.unit for side in sizes.fixed_size)
    ):
        model.unit = sizes.padding.unit


def export_record(args: Namespace) -> 'Provenance':
    """The provenance record of the file, which states where its weights come from."""
    from vit_plugin.inference.saved_model import find_checkpoint
    from vit_plugin.weights.carried_records import address_record
    from vit_plugin.weights.provenance import converted_record

    source = find_checkpoint(args.checkpoint, args.which)
    return converted_record(address_record(source), str(args.out), made='exported')


def export_summary(
    args: Namespace, model: 'Deployed', size: tuple[int, int] | None, difference: float
) -> str:
    """Summarize what was written: inputs, outputs, and their difference from the model."""
    sides = f'height and width multiples of {model.unit} from {model.min_units * model.unit} on'
    count, channels = 'any number' if args.dynamic else 1, model.model.backbone.in_channels
    return (
        f'{args.out}: images ({", ".join(map(str, (count, channels, *(size or [sides]))))}), '
        f'{args.dtype} -> {", ".join(model.outputs)}; largest difference from the model in '
        f'float32: {difference:.1e} of the largest value'
    )
