"""Draw what a model sees in images: attention, its distance, features, positions, filters, class activation.

    python tools/visualize.py attention CHECKPOINT IMAGE... --config CONFIG --out FOLDER
    python tools/visualize.py features timm://vit_small_patch14_dinov2.lvd142m IMAGE... --size 448 --out FOLDER
"""

import argparse
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
from matplotlib.figure import Figure
from mmengine.config import Config
from mmengine.device import get_device
from torch import nn

from vit_plugin import visualization
from vit_plugin.engine import pictures
from vit_plugin.engine.checks import check_channels, check_checkpoint
from vit_plugin.engine.inference import (
    Pretrained,
    Seen,
    build_pipeline,
    image_files,
    load_model,
    seen_at_size,
    seen_in_test,
)
from vit_plugin.engine.launch import add_cfg_options, at_least, check_device, read_config, run_tool
from vit_plugin.errors import ConfigError
from vit_plugin.writing import check_target, replacing


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description='Draw what a model sees in images.')
    parser.add_argument('picture', choices=[*OF_EACH, *OF_ALL], help='what to draw')
    parser.add_argument('checkpoint', help='checkpoint file or address')
    parser.add_argument('images', nargs='*', metavar='IMAGE', help='image file, or folder of images')
    parser.add_argument('--config', help='config of the checkpoint')
    parser.add_argument('--arch', help='arch of the checkpoint, such as B/16, in place of a config; default for '
                                       'timm://NAME: the same')
    parser.add_argument('--out', required=True, type=Path, help='folder for the pictures')
    parser.add_argument('--size', type=at_least(1), help="shorter side of the images in pixels; default: the config's "
                                                         'test pipeline, or the img_size of the arch')
    parser.add_argument('--blocks', nargs='+', type=int, default=[-1], metavar='BLOCK',
                        help='blocks for attention and rollout, from 0; negative ones from the end; default: the last')
    parser.add_argument('--heads', nargs='+', type=int, metavar='HEAD',
                        help='heads for attention, from 0; default: all')
    parser.add_argument('--class', dest='label', help='name or number of the class for cam; default: the likeliest')
    parser.add_argument('--formats', nargs='+', choices=['png', 'pdf', 'svg'], default=['png', 'pdf'])
    parser.add_argument('--device', default=get_device(), help='default: %(default)s')
    add_cfg_options(parser)
    return parser


class Subject(NamedTuple):
    """What is drawn.

    Attributes:
        model: the model.
        classes: the names of its classes, if they are known.
        see: gives an image file as the model gets it.
    """
    model: nn.Module
    classes: list[str]
    see: Callable[[str], Seen]


def load_subject(args: argparse.Namespace) -> Subject:
    if args.config:
        cfg = read_config(args.config, args.cfg_options)
        check_checkpoint(args.checkpoint)
        check_channels(cfg.model)
        model, meta = load_model(cfg, args.checkpoint, args.device, only_backbone=args.picture != 'cam')
        see = partial(seen_at_size, model, size=args.size) if args.size else partial(
            seen_in_test, model, build_pipeline(cfg))
        return Subject(model, list(meta.get('classes') or ()), see)
    arch = args.arch or (args.checkpoint if args.checkpoint.startswith('timm://') else None)
    if arch is None:
        raise ConfigError('Give --config with the config of the checkpoint, or --arch with its arch, such as B/16.')
    check_checkpoint(args.checkpoint)
    options = Config()
    options.merge_from_dict(args.cfg_options or {})  # reads the dots in the keys
    model = Pretrained(arch, args.checkpoint, **options.to_dict()).to(args.device)
    return Subject(model, [], partial(seen_at_size, model, size=args.size or min(model.backbone.img_size)))


def attention(subject: Subject, seen: Seen, args: argparse.Namespace) -> Figure:
    return pictures.attention(subject.model, seen, args.blocks, args.heads)


def rollout(subject: Subject, seen: Seen, args: argparse.Namespace) -> Figure:
    return pictures.rollout(subject.model, seen, args.blocks)


def cam(subject: Subject, seen: Seen, args: argparse.Namespace) -> Figure:
    classes, label = subject.classes, args.label
    if label is not None and label not in classes and not label.isdecimal():
        raise ConfigError(f'--class: there is no class {label!r}; give one of {", ".join(classes) or "the numbers"}.')
    if label is not None:
        label = classes.index(label) if label in classes else int(label)
    return pictures.cam(subject.model, seen, label, classes)


def distance(model: nn.Module, seen: Iterable[Seen]) -> Figure:
    distances = [visualization.attention_distances(model, one.inputs) for one in seen]
    return visualization.draw_attention_distances(torch.stack(distances).mean(dim=0))


def features(model: nn.Module, seen: Iterable[Seen]) -> Figure:
    return pictures.features(model, *seen)


def posembed(model: nn.Module, seen: Iterable[Seen]) -> Figure:
    return visualization.draw_position_similarity(visualization.position_similarity(model))


def filters(model: nn.Module, seen: Iterable[Seen]) -> Figure:
    return visualization.draw_filters(visualization.principal_filters(model))


OF_EACH: dict[str, Callable[[Subject, Seen, argparse.Namespace], Figure]] = {
    'attention': attention, 'rollout': rollout, 'cam': cam}
OF_ALL: dict[str, Callable[[nn.Module, Iterable[Seen]], Figure]] = {
    'distance': distance, 'features': features, 'posembed': posembed, 'filters': filters}
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
    if args.config and args.arch:
        raise ConfigError('--config and --arch both say what the model is; give one of them.')
    check_device(args.device)
    if args.picture in OF_EACH:
        check_names(args.images)
    for name, figure in draw(load_subject(args), args):
        for suffix in args.formats:
            target = args.out / f'{name}.{suffix}'
            check_target(target, args.images)
            with replacing(target, args.images) as path:
                figure.savefig(path)
            print(target)


if __name__ == '__main__':
    run_tool(make_parser(), main)
