"""Write the data sets that the defaults of ``train --data`` were chosen by (docs/results.md).

    python benchmarks defaults scenes scenes
    python benchmarks defaults thin thin
    python benchmarks defaults few cifar10-jpeg few
    python benchmarks defaults coco BCCD cells
    python benchmarks defaults instances objects

- ``scenes``: shapes and lines, drawn on crops of scikit-learn's photographs, with semantic masks.
- ``thin``: the same with small shapes and lines of two pixels.
- ``instances``: the scenes with the visible part of each shape as a mask in COCO's run lengths.
- ``few``: 60 training images of each of 5 classes of a folder, and its validation images.
- ``coco``: Pascal VOC's boxes as COCO, with VOC's splits.
"""

import argparse
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
from coco_file import CocoFile
from PIL import Image, ImageDraw
from sklearn.datasets import load_sample_images

WIDTH, HEIGHT = 256, 192
SHAPES = ('background', 'disc', 'square', 'triangle', 'ring', 'line')
THIN = 4  # width in pixels of a ring and a line
RADII = (12.0, 36.0)  # of the smallest and the largest shape
SMALL = dict(thin=2, radii=(5.0, 14.0))  # arguments of draw_shape
FEW_CLASSES, FEW_PER_CLASS = 5, 60


def scene(
    rng: np.random.Generator, validation: bool, **sizes: Any
) -> tuple[Image.Image, np.ndarray, np.ndarray]:
    """Draw a scene: a photograph with three to six shapes, each in one color with noise.

    Args:
        rng: draws everything.
        validation: whether the photographs' parts for validation are used.
        sizes: ``thin`` and ``radii`` of :func:`draw_shape`.

    Returns:
        The image, the class of each pixel (H, W), and the number of the shape in each pixel (H, W),
        0 for none.
    """
    photo = load_sample_images().images[rng.integers(2)]
    # Training sees the left three fifths, validation the rest.
    cut = photo.shape[1] * 3 // 5
    photo = photo[:, cut:] if validation else photo[:, :cut]
    y, x = rng.integers(photo.shape[0] - HEIGHT), rng.integers(max(photo.shape[1] - WIDTH, 1))
    image = np.array(
        Image.fromarray(photo[y : y + HEIGHT, x : x + WIDTH]).resize((WIDTH, HEIGHT)), float
    )
    mask, numbers = np.zeros((2, HEIGHT, WIDTH), np.uint8)
    for number in range(1, rng.integers(3, 7) + 1):
        layer, label = Image.new('1', (WIDTH, HEIGHT)), int(rng.integers(1, len(SHAPES)))
        draw_shape(ImageDraw.Draw(layer), SHAPES[label], rng, **sizes)
        drawn = np.array(layer)
        image[drawn] = rng.uniform(0, 256, 3) + rng.normal(0, 20, (drawn.sum(), 3))
        mask[drawn], numbers[drawn] = label, number
    return Image.fromarray(image.clip(0, 255).astype(np.uint8)), mask, numbers


def draw_shape(
    draw: ImageDraw.ImageDraw,
    shape: str,
    rng: np.random.Generator,
    thin: int = THIN,
    radii: tuple[float, float] = RADII,
    size: tuple[int, int] = (WIDTH, HEIGHT),
) -> None:
    """Draw a shape at a random place, in a random size and orientation, with the value 1."""
    radius, turn = rng.uniform(*radii), rng.uniform(0, 2 * np.pi)
    x, y = (rng.uniform(20, side - 20) for side in size)
    box = (x - radius, y - radius, x + radius, y + radius)
    if shape == 'disc':
        draw.ellipse(box, fill=1)
    elif shape == 'ring':
        draw.ellipse(box, outline=1, width=thin)
    else:
        corners = dict(line=2, triangle=3, square=4)[shape]
        angles = turn + 2 * np.pi * np.arange(corners) / corners
        points = [(x + radius * np.cos(angle), y + radius * np.sin(angle)) for angle in angles]
        draw.line(points, 1, thin) if shape == 'line' else draw.polygon(points, fill=1)


def write_scenes(folder: Path, train: int = 240, val: int = 80, **sizes: Any) -> None:
    """Write scenes with semantic masks. ``sizes`` are those of :func:`draw_shape`."""
    for split, number in (('train', train), ('val', val)):
        for kind in ('images', 'masks'):
            (folder / kind / split).mkdir(parents=True)
        rng = np.random.default_rng([split == 'val', 43])
        for i in range(number):
            image, mask, _ = scene(rng, split == 'val', **sizes)
            image.save(folder / f'images/{split}/{i:03}.png')
            Image.fromarray(mask).save(folder / f'masks/{split}/{i:03}.png')
    (folder / 'classes.txt').write_text('\n'.join(SHAPES) + '\n')


def write_instances(folder: Path, train: int = 240, val: int = 80) -> None:
    """Write scenes with the mask of each shape as COCO."""
    from pycocotools import mask as run_lengths

    for split, count in (('train', train), ('val', val)):
        (folder / split).mkdir(parents=True)
        rng, coco = np.random.default_rng([split == 'val', 43]), CocoFile(SHAPES[1:])
        for i in range(count):
            image, mask, numbers = scene(rng, split == 'val')
            image.save(folder / f'{split}/{i:03}.png')
            coco.add_image(f'{i:03}.png', WIDTH, HEIGHT)
            for number in np.unique(numbers[numbers > 0]).tolist():
                drawn = np.asfortranarray(numbers == number, np.uint8)
                encoded = run_lengths.encode(drawn)
                coco.add(
                    int(mask[numbers == number][0]) - 1,
                    run_lengths.toBbox(encoded).tolist(),
                    area=int(drawn.sum()),
                    segmentation=dict(size=encoded['size'], counts=encoded['counts'].decode()),
                )
        coco.write(folder / f'annotations/instances_{split}.json')


def write_few(source: Path, folder: Path, seed: int) -> None:
    """Link a few images of a folder of classes.

    Seed 0 keeps the validation images. Any other seed takes 200 unused training images of each
    class in their place, so that settings can be chosen without the validation images.
    """
    rng = np.random.default_rng(seed)
    for name in sorted(
        rng.permutation(sorted(path.name for path in (source / 'train').iterdir()))[:FEW_CLASSES]
    ):
        images = rng.permutation(sorted((source / 'train' / name).iterdir()))
        val = (
            images[FEW_PER_CLASS : FEW_PER_CLASS + 200]
            if seed
            else sorted((source / 'val' / name).iterdir())
        )
        for split, chosen in (('train', images[:FEW_PER_CLASS]), ('val', val)):
            (folder / split / name).mkdir(parents=True)
            for path in chosen:
                (folder / split / name / path.name).symlink_to(path.resolve())


def write_coco(source: Path, folder: Path, hold_out: bool) -> None:
    """Write the boxes of VOC as COCO.

    With ``hold_out``, validation has every fifth training image and no others.
    """
    lists = {
        split: (source / f'ImageSets/Main/{split}.txt').read_text().split()
        for split in ('train', 'val')
    }
    if hold_out:
        lists['val'] = lists['train'][4::5]
        lists['train'] = sorted(set(lists['train']) - set(lists['val']))
    folder.mkdir(parents=True)
    (folder / 'images').symlink_to((source / 'JPEGImages').resolve())
    roots = {
        split: [ET.parse(source / f'Annotations/{name}.xml').getroot() for name in names]
        for split, names in lists.items()
    }
    classes = sorted(
        {element.text for root in roots['train'] for element in root.iterfind('object/name')}
    )
    for split, names in lists.items():
        coco = CocoFile(classes)
        for name, root in zip(names, roots[split], strict=True):
            size = {side: int(root.findtext(f'size/{side}')) for side in ('width', 'height')}
            coco.add_image(f'{name}.jpg', **size)
            for element in root.iterfind('object'):
                left, top, right, bottom = (
                    int(float(element.findtext(f'bndbox/{edge}'))) - 1  # VOC counts from 1
                    for edge in ('xmin', 'ymin', 'xmax', 'ymax')
                )
                label = classes.index(element.findtext('name'))
                coco.add(label, [left, top, right - left, bottom - top])
        coco.write(folder / f'annotations/instances_{split}.json')


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('kind', choices=('scenes', 'thin', 'few', 'coco', 'instances'))
    parser.add_argument('folders', nargs='+', type=Path)
    parser.add_argument(
        '--seed', type=int, default=0, help='of few; not 0: hold out training images'
    )
    parser.add_argument(
        '--hold-out',
        action='store_true',
        help='of coco: validate on a part of the training images',
    )
    args = parser.parse_args()
    sources = ('few', 'coco')  # kinds that read a folder, and write another
    if len(args.folders) != 1 + (args.kind in sources):
        wanted = 'two folders, the source first' if args.kind in sources else 'one folder'
        parser.error(f'{args.kind} takes {wanted}')
    if args.seed and args.kind != 'few':
        parser.error(f'--seed is of few, and not of {args.kind}')
    if args.hold_out and args.kind != 'coco':
        parser.error(f'--hold-out is of coco, and not of {args.kind}')
    if args.kind == 'scenes':
        write_scenes(*args.folders)
    elif args.kind == 'thin':
        write_scenes(*args.folders, **SMALL)
    elif args.kind == 'instances':
        write_instances(*args.folders)
    elif args.kind == 'few':
        write_few(*args.folders, args.seed)
    else:
        write_coco(*args.folders, args.hold_out)


if __name__ == '__main__':
    main()
