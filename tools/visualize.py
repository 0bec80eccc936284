"""Draw what a model sees in images: attention, its distance, features, positions, class activation.

    python tools/visualize.py attention CHECKPOINT IMAGE... --out FOLDER
    python tools/visualize.py features timm://vit_small_patch14_dinov2.lvd142m IMAGE... --size 448 --out FOLDER
"""

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vit_plugin.apps.flags import add_model_arguments, at_least, run_tool
from vit_plugin.errors import ConfigError

OF_EACH, OF_ALL, WITHOUT_IMAGES = ('attention', 'rollout', 'cam'), ('distance', 'posembed', 'features'), ('posembed', )


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description='Draw what a model sees in images.')
    parser.add_argument('picture', choices=[*OF_EACH, *OF_ALL], help='what to draw')
    add_model_arguments(parser)
    parser.add_argument('images', nargs='*', metavar='IMAGE', help='image file, or folder of images')
    parser.add_argument('--out', required=True, type=Path, help='folder for the pictures')
    parser.add_argument('--size', type=at_least(1), help="shorter side of the images in pixels; default: the config's "
                                                         'test pipeline, or the img_size of the arch')
    parser.add_argument('--blocks', nargs='+', type=int, default=[-1], metavar='BLOCK',
                        help='blocks for attention and rollout, from 1; negative ones from the end; default: the last')
    parser.add_argument('--heads', nargs='+', type=int, metavar='HEAD',
                        help='heads for attention, from 1; default: all')
    parser.add_argument('--class', dest='label', help='name or number of the class for cam; default: the most probable')
    parser.add_argument('--formats', nargs='+', choices=['png', 'pdf', 'svg'], default=['png', 'pdf'])
    return parser


def class_number(label: str | None, classes: list[str]) -> int | None:
    """The number of the class that ``--class`` names."""
    if label is None or label in classes:
        return None if label is None else classes.index(label)
    if not label.isdecimal():
        raise ConfigError(f'--class: there is no class {label!r}; give one of {", ".join(classes) or "the numbers"}.')
    return int(label)


def draw(trained: Any, args: argparse.Namespace) -> Iterator[tuple[str, Any]]:
    """The pictures and their names without suffixes."""
    from vit_plugin.visualization import pictures
    prepared = (trained.prepare(path, args.size) for path in args.images)
    if args.picture == 'features':
        yield args.picture, pictures.features(trained.model, *prepared)
    elif args.picture in OF_ALL:
        yield args.picture, pictures.OF_ALL[args.picture](trained.model, prepared)
    else:
        options = dict(attention=lambda: dict(blocks=args.blocks, heads=args.heads),
                       rollout=lambda: dict(blocks=args.blocks),
                       cam=lambda: dict(label=class_number(args.label, trained.classes), classes=trained.classes))
        for path, image in zip(args.images, prepared, strict=True):
            figure = pictures.PER_IMAGE[args.picture](trained.model, image, **options[args.picture]())
            yield f'{Path(path).stem}_{args.picture}', figure


def check_names(images: list[str]) -> None:
    """Check that no two images give pictures of the same name."""
    name, count = Counter(Path(path).stem for path in images).most_common(1)[0]
    if count > 1:
        raise ConfigError(f'Two images are named {name}; draw them into two folders.')


def main(args: argparse.Namespace) -> None:
    from vit_plugin.apps.load import load
    from vit_plugin.files.complete import check_target, replacing
    from vit_plugin.files.images import image_files
    args.images = image_files(args.images)
    if bool(args.images) == (args.picture in WITHOUT_IMAGES):
        raise ConfigError(f'{args.picture} shows the model alone; leave out the images.' if args.images else
                          f'{args.picture} needs at least one image.')
    if args.picture in OF_EACH:
        check_names(args.images)
    trained = load(args.checkpoint, args.config, args.arch, args.device, args.cfg_options, args.picture == 'cam')
    for name, figure in draw(trained, args):
        for suffix in args.formats:
            target = args.out / f'{name}.{suffix}'
            check_target(target, args.images)
            with replacing(target, args.images) as path:
                figure.savefig(path)
            print(target)


if __name__ == '__main__':
    run_tool(make_parser(), main)
