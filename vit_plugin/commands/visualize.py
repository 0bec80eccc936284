r"""Draw what a model sees: attention, its distance, features, positions, class activation.

vit-plugin visualize CHECKPOINT attention IMAGE... --out FOLDER
vit-plugin visualize timm://vit_small_patch14_dinov2.lvd142m features IMAGE... \
        --img-size 448 --out FOLDER
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vit_plugin.errors import ConfigError

from .flags import a_folder, add_flags, add_model_arguments, load_model

if TYPE_CHECKING:
    from vit_plugin.inference.inputs import Input, Reading
    from vit_plugin.inference.prepared_image import PreparedImage

IMAGE_PICTURES = ('attention', 'rollout', 'cam')  # one picture for each image
MODEL_PICTURES = ('distance', 'posembed', 'features')  # one picture for the model or all images
# Advice if memory runs out, see commands/__init__.py.
LESS_MEMORY = 'give a smaller --img-size'


def add_arguments(parser: ArgumentParser) -> None:
    add_model_arguments(parser)
    parser.add_argument('picture', choices=[*IMAGE_PICTURES, *MODEL_PICTURES], help='what to draw')
    add_flags(parser, 'images', nargs='*')
    add_flags(
        parser,
        '--out',
        type=a_folder(),
        required=True,
        metavar='FOLDER',
        help='folder for the pictures',
    )
    add_flags(
        parser,
        '--img-size',
        help="shorter side of the images in pixels; default: by the config's "
        'test pipeline, or the img_size of the arch',
    )
    parser.add_argument(
        '--blocks',
        nargs='+',
        type=int,
        metavar='BLOCK',
        help='blocks for attention and rollout, from 1; negative ones from the end; default: the '
        'last',
    )
    parser.add_argument(
        '--heads',
        nargs='+',
        type=int,
        metavar='HEAD',
        help='heads for attention, from 1; default: all',
    )
    parser.add_argument(
        '--class',
        help='name or number of the class for cam; default: the most probable',
    )
    parser.add_argument(
        '--formats',
        nargs='+',
        choices=['png', 'pdf', 'svg'],
        default=['png'],
        help='default: png',
    )


def class_number(label: str | None, classes: list[str]) -> int | None:
    """The number of the class that ``--class`` names, or None without the flag."""
    if label is None:
        return None
    if label in classes:
        return classes.index(label)
    if not label.isdecimal():
        raise ConfigError(
            f'--class: there is no class {label!r}; give one of '
            f'{", ".join(classes) or "the numbers"}.'
        )
    return int(label)


def check(args: Namespace) -> None:
    """Find the images and the paths of their pictures, without importing torch."""
    from vit_plugin.inference.inputs import find_inputs
    from vit_plugin.inference.targets import choose_targets, without_earlier_outputs

    args.images = without_earlier_outputs(find_inputs(args.images, with_videos=False), [args.out])
    args.targets = choose_targets(args.images, args.out) if args.picture in IMAGE_PICTURES else {}


def draw_pictures(trained: Any, args: Namespace, reading: 'Reading') -> Iterator[tuple[Path, Any]]:
    """Draw the pictures, and yield them with their paths without suffixes."""
    from vit_plugin.inference.inputs import Frame
    from vit_plugin.report.pictures import pictures

    def prepare(source: 'Input') -> Any:
        """The image as the model receives it, or None if it cannot be read."""
        return reading.read(
            source,
            lambda pixels: trained.prepare(
                trained.sample_argument(Frame(source, None, pixels)), args.img_size
            ),
        )

    read = ((source, prepare(source)) for source in args.images)
    prepared = ((source, image) for source, image in read if image is not None)
    if args.picture in IMAGE_PICTURES:
        yield from draw_each(trained, args, prepared)
        return
    images = [image for _, image in prepared]
    if not images and args.images:
        return  # no image can be read
    if args.picture == 'features':
        figure = pictures.draw_features(trained.model, *images)
    else:
        figure = pictures.ACROSS_IMAGES[args.picture](trained.model, images)
    yield args.out / args.picture, figure


def draw_each(
    trained: Any, args: Namespace, prepared: Iterable[tuple['Input', 'PreparedImage']]
) -> Iterator[tuple[Path, Any]]:
    """Draw a picture of each image, see :func:`draw_pictures`."""
    from vit_plugin.inference.targets import bases_of
    from vit_plugin.report.pictures import pictures

    blocks = args.blocks or [-1]
    label = class_number(getattr(args, 'class'), trained.classes)
    options: dict[str, dict[str, Any]] = dict(
        attention=dict(blocks=blocks, heads=args.heads),
        rollout=dict(blocks=blocks),
        cam=dict(label=label, classes=trained.classes),
    )
    bases = bases_of(args.targets.values())
    for source, image in prepared:
        figure = pictures.PER_IMAGE[args.picture](trained.model, image, **options[args.picture])
        base = bases[args.targets[source]]
        yield base.with_name(f'{base.name}_{args.picture}'), figure


def main(args: Namespace) -> None:
    from anyfolder.terminal import printable
    from vit_plugin.inference.inputs import Reading
    from vit_plugin.inference.targets import check_no_input_overwritten
    from vit_plugin.report.pictures.figure_files import save_figure

    trained = load_model(args, classify=args.picture == 'cam')
    reading = Reading(args.images)
    for base, figure in draw_pictures(trained, args, reading):
        targets = [base.with_name(f'{base.name}.{suffix}') for suffix in args.formats]
        check_no_input_overwritten(targets, args.images)
        for target in targets:
            save_figure(figure, target)
            print(printable(target))
    reading.finish()  # raises if an input could not be read
