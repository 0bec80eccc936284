"""Small objects that ``vit-plugin infer --slices`` finds in large images (docs/detection.md).

    python benchmarks slices FOLDER

It draws images of 192 pixels with small shapes, trains the default detector on them, and predicts
12 images of 1,536 x 1,152 pixels without slices and with them. It prints COCO's average precision
and how many shapes are found, with a score of 0.3 and an overlap of 0.5.
"""

import argparse
import json
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np
from coco_file import CocoFile
from PIL import Image, ImageDraw
from sklearn.datasets import load_sample_images

SHAPES = ('disc', 'square', 'triangle')
SMALL, LARGE = (192, 192), (1536, 1152)  # width and height
SIDES = 8, 20  # pixels of a shape
DENSITY = 6.7e-5  # shapes per pixel
SCORE, OVERLAP = 0.3, 0.5


def image_of(
    random: np.random.Generator, size: tuple[int, int]
) -> tuple[Image.Image, list[tuple[int, tuple[int, int, int, int]]]]:
    """A part of a photograph with shapes, their classes and boxes (x, y, width, height)."""
    photo = Image.fromarray(load_sample_images().images[random.integers(2)])
    if size == SMALL:
        x, y = (random.integers(whole - side) for whole, side in zip(photo.size, size, strict=True))
        image = photo.crop((x, y, x + size[0], y + size[1]))
    else:
        image = photo.resize(size)
    draw, objects = ImageDraw.Draw(image), []
    for _ in range(max(round(size[0] * size[1] * DENSITY * random.uniform(0.7, 1.3)), 1)):
        side, kind = int(random.integers(*SIDES)), int(random.integers(len(SHAPES)))
        left, top = (int(random.integers(whole - side)) for whole in size)
        color = tuple(random.integers(0, 256, 3).tolist())
        right, bottom = left + side, top + side
        if SHAPES[kind] == 'disc':
            draw.ellipse((left, top, right, bottom), color)
        elif SHAPES[kind] == 'square':
            draw.rectangle((left, top, right, bottom), color)
        else:
            draw.polygon([(left, bottom), (right, bottom), ((left + right) / 2, top)], color)
        objects.append((kind, (left, top, side + 1, side + 1)))
    return image, objects


def write(folder: Path, part: str, number: int, size: tuple[int, int], seed: int) -> Path:
    """Write images and their boxes as COCO. Returns the file of the boxes."""
    random = np.random.default_rng(seed)
    (folder / part).mkdir(parents=True)
    coco = CocoFile(SHAPES)
    for i in range(number):
        image, objects = image_of(random, size)
        image.save(folder / f'{part}/{i:03}.png')
        coco.add_image(f'{i:03}.png', *size)
        for kind, box in objects:
            coco.add(kind, box)
    target = folder / f'annotations/instances_{part}.json'
    coco.write(target)
    return target


def score(truth: Path, predictions: Path) -> str:
    """Average precision of predictions in ``infer``'s JSON, and how many objects are found."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    with redirect_stdout(StringIO()):
        coco = COCO(truth)
        numbers = {image['file_name']: number for number, image in coco.imgs.items()}
        boxes = [
            dict(
                image_id=numbers[Path(name).name],
                category_id=SHAPES.index(row['class']) + 1,
                score=row['score'],
                bbox=[
                    row['left'],
                    row['top'],
                    row['right'] - row['left'],
                    row['bottom'] - row['top'],
                ],
            )
            for name, rows in json.loads(predictions.read_text()).items()
            for row in rows
        ]
        if not boxes:
            return 'AP 0.0, found 0'
        evaluation = COCOeval(coco, coco.loadRes(boxes), 'bbox')
        evaluation.params.maxDets = [1, 100, 1000]
        evaluation.evaluate()
        evaluation.accumulate()
    precision = evaluation.eval['precision'][:, :, :, 0, -1]
    sure = COCOeval(coco, coco.loadRes([box for box in boxes if box['score'] > SCORE]), 'bbox')
    sure.params.maxDets, sure.params.iouThrs = [1000], np.array([OVERLAP])
    sure.params.areaRng, sure.params.areaRngLbl = [[0, 1e10]], ['all']
    with redirect_stdout(StringIO()):
        sure.evaluate()
    matches = np.concatenate([image['dtMatches'][0] for image in sure.evalImgs if image])
    found = int((matches > 0).sum())
    return (
        f'AP {100 * precision[precision > -1].mean():.1f}, found {found} of '
        f'{len(coco.anns)}, further boxes {len(matches) - found}'
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('folder', type=Path)
    folder = parser.parse_args().folder.resolve()
    write(folder / 'tiles', 'train', 300, SMALL, 0)
    write(folder / 'tiles', 'val', 60, SMALL, 1)
    truth = write(folder, 'large', 12, LARGE, 2)

    def run(*arguments: object) -> None:
        line = [sys.executable, '-m', 'vit_plugin', *map(str, arguments)]
        subprocess.run(line, check=True)

    task = ('--task', 'detection', '--epochs', 14, '--work-dir', folder / 'run')
    run('train', '--data', folder / 'tiles', *task, '--cfg-options', 'train_cfg.val_interval=14')
    for name, flags in (('without', ()), ('with', ('--slices', SMALL[0], '--batch-size', 8))):
        target = folder / f'{name}.json'
        run('infer', folder / 'run', folder / 'large', *flags, '--score-thr', 0.01, '--out', target)
        print(f'{name} slices: {score(truth, target)}', flush=True)


if __name__ == '__main__':
    main()
