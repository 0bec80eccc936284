r"""Say how good a checkpoint's features are, without training it.

vit-plugin probe CHECKPOINT
vit-plugin probe --config configs/hybrid_vit/hybrid-vit-mini-p2_1xb16_digits.py
vit-plugin probe timm://vit_small_patch16_dinov3.lvd1689m \
        timm://deit3_small_patch16_224 --masks FOLDER
"""

import statistics
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from vit_plugin.errors import ConfigError

from .flags import a_file, add_flags, at_least

if TYPE_CHECKING:
    from vit_plugin.measure.dense_probing import Labeled

PROBES = ('knn', 'linear', 'fewshot')
DENSE_PROBES = PROBES[:2]
LESS_MEMORY = 'give a smaller val_dataloader.batch_size, or --img-size with --masks'


def add_arguments(parser: ArgumentParser) -> None:
    add_flags(
        parser,
        'checkpoint',
        nargs='*',
        help='a checkpoint, the folder of a run, or weights of any format with --config; without '
        "it, the init_cfg of the config's backbone; with --masks one or several",
    )
    add_flags(parser, '--checkpoint', '--config', '--work-dir', '--verbose', '--no-pin-memory')
    add_flags(parser, '--cfg-options')
    parser.set_defaults(launcher='none', local_rank=0)  # of load_config: one process
    parser.add_argument('--probes', nargs='+', choices=PROBES, help='default: all')
    parser.add_argument(
        '--shots',
        nargs='+',
        type=at_least(1),
        default=[1, 5, 10],
        metavar='N',
        help='images of each class that fewshot gets; default: 1 5 10',
    )
    add_flags(
        parser,
        '--seeds',
        help='how often fewshot draws them, or --masks half of the training images; default: 3',
    )
    add_flags(
        parser, '--out', type=a_file('.json'), metavar='FILE', help='a .json file for the results'
    )
    dense = parser.add_argument_group('which backbone segments my images')
    dense.add_argument(
        '--masks', metavar='FOLDER', help='images and masks, as for train --task segmentation'
    )
    dense.add_argument(
        '--depths',
        nargs='+',
        type=at_least(0.01, float, 1),
        default=[0.25, 0.5, 0.75, 1.0],
        metavar='FRACTION',
        help='fractions of the blocks; default: 0.25 0.5 0.75 1',
    )
    add_flags(
        dense,
        '--img-size',
        nargs='+',
        type=at_least(16),
        help="shorter sides of the images; default: the model's",
    )


def check(args: Namespace) -> None:
    """Find out whether there is something to probe, which takes no torch."""
    if args.masks and not args.checkpoint:
        raise ConfigError(
            '--masks compares models; give checkpoints, or names such as timm://NAME.'
        )
    if not args.masks and len(args.checkpoint) > 1:
        raise ConfigError(
            'Several checkpoints are compared on --masks FOLDER; give one, or --masks.'
        )
    if not args.checkpoint and not args.config:
        raise ConfigError('Give a checkpoint, or --config with a config.')


def main(args: Namespace) -> None:
    import mmengine

    from anyfolder.complete import check_target, replacing

    if args.out:
        check_target(args.out, [path for path in (args.config, *args.checkpoint) if path])
    found = segmentation(args) if args.masks else classification(args)
    if args.out:
        with replacing(args.out) as path:
            mmengine.dump(found, path)


def classification(args: Namespace) -> dict[str, Any]:
    """Print the accuracies of one model on the images of its config, and return them."""
    from vit_plugin.commands.command_line import build_runner, load_config
    from vit_plugin.inference.saved_model import open_model
    from vit_plugin.measure.probing import features_of, prepare, probe
    from vit_plugin.models.loading import load_weights

    saved = (
        open_model(args.checkpoint[0], args.config, args.cfg_options, 'probe', args.which)
        if args.checkpoint
        else None
    )
    cfg = load_config(args, saved)
    prepare(cfg)
    runner = build_runner(cfg, ['train_dataloader', 'val_dataloader'])
    if saved:
        print(load_weights(runner.model, saved.checkpoint, skip=['head.{rest}']))
    else:
        runner.model.init_weights()
    train, val = (
        features_of(runner.model, runner.build_dataloader(loader))
        for loader in (cfg.train_dataloader, cfg.val_dataloader)
    )
    found = probe(train, val, args.probes or PROBES, args.shots, args.seeds)
    for name, accuracy in found.items():
        if name != 'fewshot':
            print(f'{name}: {accuracy:.2f} %')
    for number, accuracies in found.get('fewshot', {}).items():
        print(
            f'fewshot, {number} of each class: {statistics.mean(accuracies):.2f} % '
            f'({min(accuracies):.2f} to {max(accuracies):.2f} in {len(accuracies)} draws)'
        )
    return found


def read_labeled(folder: str) -> 'Labeled':
    """Read a folder of images and masks.

    See :func:`~anyfolder.readers.mask_folders.read_mask_folder`.
    """
    from anyfolder.readers.drawn_masks import class_map
    from anyfolder.readers.image_tree import Tree
    from anyfolder.readers.mask_folders import read_mask_folder
    from vit_plugin.from_folder.folder_reading import reading_folder
    from vit_plugin.measure.dense_probing import Labeled

    with reading_folder('--masks'):
        found = read_mask_folder(Tree(folder))
    photos = [*found.train, *found.val]
    masks = [class_map(found, photo) for photo in photos]
    return Labeled([photo.path for photo in photos], masks, len(found.train), len(found.classes))


def segmentation(args: Namespace) -> list[dict[str, Any]]:
    """Print the mIoU of all models as tables, and return their rows."""
    from vit_plugin.inference.load import load
    from vit_plugin.measure.dense_probing import dense_probe, rank_correlation, table

    data, probes = read_labeled(args.masks), args.probes or DENSE_PROBES
    rows: list[Any] = []
    for name in args.checkpoint:
        trained = load(
            name, args.config, cfg_options=args.cfg_options, classify=False, which=args.which
        )
        for size in args.img_size or [None]:
            rows += dense_probe(name, trained, data, args.depths, size, probes, args.seeds)
    for probe in probes:
        print(f'\n{probe}, mIoU in per cent\n\n{table(rows, probe)}')
        ranked = [row for row in rows if row.probe == probe]
        if args.seeds > 1 and len(ranked) > 2:
            print(
                '\nrank correlation between draws of the training images: '
                f'{rank_correlation(ranked):.2f}'
            )
    return [row._asdict() for row in rows]
