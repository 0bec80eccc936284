"""Draw what a model sees in images: attention, its distance, features, positions, filters, class activation.

    python tools/visualize.py attention CHECKPOINT IMAGE... --config CONFIG --out FOLDER
    python tools/visualize.py features timm://vit_small_patch14_dinov2.lvd142m IMAGE... --size 448 --out FOLDER
"""

import argparse
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from matplotlib.figure import Figure
from torch import nn

from vit_plugin.apps.command_line import run_tool
from vit_plugin.apps.inference import image_files
from vit_plugin.apps.subject import Subject, add_subject_arguments, read_subject
from vit_plugin.errors import ConfigError
from vit_plugin.files.complete import check_target, replacing
from vit_plugin.visualization import pictures
from vit_plugin.visualization.pictures import PreparedImage


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description='Draw what a model sees in images.')
    parser.add_argument('picture', choices=[*OF_EACH, *OF_ALL], help='what to draw')
    parser.add_argument('checkpoint', help='checkpoint file or address')
    parser.add_argument('images', nargs='*', metavar='IMAGE', help='image file, or folder of images')
    parser.add_argument('--out', required=True, type=Path, help='folder for the pictures')
    parser.add_argument('--blocks', nargs='+', type=int, default=[-1], metavar='BLOCK',
                        help='blocks for attention and rollout, from 0; negative ones from the end; default: the last')
    parser.add_argument('--heads', nargs='+', type=int, metavar='HEAD',
                        help='heads for attention, from 0; default: all')
    parser.add_argument('--class', dest='label', help='name or number of the class for cam; default: the likeliest')
    parser.add_argument('--formats', nargs='+', choices=['png', 'pdf', 'svg'], default=['png', 'pdf'])
    add_subject_arguments(parser)
    return parser


def attention(subject: Subject, seen: PreparedImage, args: argparse.Namespace) -> Figure:
    return pictures.attention(subject.model, seen, args.blocks, args.heads)


def rollout(subject: Subject, seen: PreparedImage, args: argparse.Namespace) -> Figure:
    return pictures.rollout(subject.model, seen, args.blocks)


def cam(subject: Subject, seen: PreparedImage, args: argparse.Namespace) -> Figure:
    classes, label = subject.classes, args.label
    if label is not None and label not in classes and not label.isdecimal():
        raise ConfigError(f'--class: there is no class {label!r}; give one of {", ".join(classes) or "the numbers"}.')
    if label is not None:
        label = classes.index(label) if label in classes else int(label)
    return pictures.cam(subject.model, seen, label, classes)


def features(model: nn.Module, seen: Iterable[PreparedImage]) -> Figure:
    return pictures.features(model, *seen)


OF_EACH: dict[str, Callable[[Subject, PreparedImage, argparse.Namespace], Figure]] = {
    'attention': attention, 'rollout': rollout, 'cam': cam}
OF_ALL: dict[str, Callable[[nn.Module, Iterable[PreparedImage]], Figure]] = {**pictures.OF_ALL, 'features': features}
WITHOUT_IMAGES = ('posembed', 'filters')


def draw(subject: Subject, args: argparse.Namespace) -> Iterator[tuple[str, Figure]]:
    """The pictures and their names without suffixes."""
    if args.picture in OF_ALL:
        yield args.picture, OF_ALL[args.picture](subject.model, map(subject.see, args.images))
    else:
        for path in args.images:
            yield f'{Path(path).stem}_{args.picture}', OF_EACH[args.picture](subject, subject.see(path), args)


def check_names(images: list[str]) -> None:
    """Check that no two images give pictures of the same name."""
    name, count = Counter(Path(path).stem for path in images).most_common(1)[0]
    if count > 1:
        raise ConfigError(f'Two images are named {name}; draw them into two folders.')


def main(args: argparse.Namespace) -> None:
    args.images = image_files(args.images)
    if bool(args.images) == (args.picture in WITHOUT_IMAGES):
        raise ConfigError(f'{args.picture} shows the model alone; leave out the images.' if args.images else
                          f'{args.picture} needs at least one image.')
    if args.picture in OF_EACH:
        check_names(args.images)
    for name, figure in draw(read_subject(args, classify=args.picture == 'cam'), args):
        for suffix in args.formats:
            target = args.out / f'{name}.{suffix}'
            check_target(target, args.images)
            with replacing(target, args.images) as path:
                figure.savefig(path)
            print(target)


if __name__ == '__main__':
    run_tool(make_parser(), main)
