r"""Find which backbone segments your images best, by dense probes of its frozen features.

    python benchmarks dense_probe timm://vit_small_patch16_dinov3.lvd1689m \
        timm://deit3_small_patch16_224 --masks FOLDER

A dense probe is a simple classifier (nearest neighbors or logistic regression) of single patches.
It is fitted to the masks in seconds; the backbone is not trained. ``benchmarks/dense_probing.py``
has the computation; this file is its command line.
"""

import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from vit_plugin.commands.entry import run_command
from vit_plugin.commands.flags import a_file, add_flags, at_least

if TYPE_CHECKING:
    from benchmarks.dense_probing import Labeled

DENSE_PROBES = ('knn', 'linear')  # those of dense_probing, which would import torch
LESS_MEMORY = 'give a smaller --img-size'  # advice when memory runs out


def add_arguments(parser: ArgumentParser) -> None:
    add_flags(
        parser,
        'checkpoint',
        nargs='+',
        help='checkpoints, folders of runs, names such as timm://NAME, or weights of any format '
        'with --config',
    )
    add_flags(parser, '--checkpoint', '--config', '--verbose', '--cfg-options')
    parser.set_defaults(launcher='none', local_rank=0)
    parser.add_argument(
        '--masks',
        metavar='FOLDER',
        required=True,
        help='images and masks, as for train --task segmentation',
    )
    parser.add_argument('--probes', nargs='+', choices=DENSE_PROBES, help='default: all')
    parser.add_argument(
        '--depths',
        nargs='+',
        type=at_least(0.01, float, most=1),
        default=[0.25, 0.5, 0.75, 1.0],
        metavar='FRACTION',
        help='fractions of the blocks; default: 0.25 0.5 0.75 1',
    )
    add_flags(
        parser,
        '--img-size',
        nargs='+',
        type=at_least(16),
        help="shorter sides of the images; default: the model's",
    )
    parser.add_argument(
        '--seeds',
        type=at_least(1),
        default=3,
        metavar='NUMBER',
        help='draws of half of the training images; default: 3',
    )
    add_flags(
        parser, '--out', type=a_file('.json'), metavar='FILE', help='a .json file for the results'
    )


def read_labeled(folder: str) -> 'Labeled':
    """Read a folder of images and masks.

    See :func:`~anyfolder.readers.mask_folders.read_mask_folder`.
    """
    from anyfolder.readers.drawn_masks import class_map
    from anyfolder.readers.image_tree import Tree
    from anyfolder.readers.mask_folders import read_mask_folder
    from benchmarks.dense_probing import Labeled
    from vit_plugin.from_folder.folder_reading import naming_train_flags

    with naming_train_flags('--masks'):
        found = read_mask_folder(Tree(folder))
    photos = [*found.train, *found.val]
    masks = [class_map(found, photo) for photo in photos]
    return Labeled([photo.path for photo in photos], masks, len(found.train), len(found.classes))


def score_checkpoints(args: Namespace) -> list[dict[str, Any]]:
    """Print the mIoU of all checkpoints as tables. Returns the fields of each `DenseScore`."""
    from benchmarks.dense_probing import dense_probe, rank_correlation, table
    from vit_plugin.inference.load import load

    data, probes = read_labeled(args.masks), args.probes or DENSE_PROBES
    rows: list[Any] = []
    for name in args.checkpoint:
        trained = load(
            name, args.config, cfg_options=args.cfg_options, classify=False, which=args.which
        )
        for size in args.img_size or [None]:
            rows += dense_probe(name, trained, data, args.depths, size, probes, args.seeds)
    for probe in probes:
        print(f'\n{probe}, mIoU in percent\n\n{table(rows, probe)}')
        ranked = [row for row in rows if row.probe == probe]
        if args.seeds > 1 and len(ranked) > 2:
            print(
                '\nrank correlation between draws of the training images: '
                f'{rank_correlation(ranked):.2f}'
            )
    return [row._asdict() for row in rows]


def main(args: Namespace) -> None:
    import mmengine

    from anyfolder.complete import check_target, replacing

    if args.out:
        check_target(args.out, [path for path in (args.config, *args.checkpoint) if path])
    rows = score_checkpoints(args)
    if args.out:
        with replacing(args.out) as path:
            mmengine.dump(rows, path)


if __name__ == '__main__':
    run_command(sys.modules[__name__])
