"""Measure how many small objects in large images ``vit-plugin infer --slices`` finds.

    python benchmarks slices FOLDER

It draws images of 192 pixels with small shapes, trains the default detector on them, and predicts
12 images of 1,536 x 1,152 pixels without slices and with them (docs/detection.md). It prints COCO's
average precision, and how many shapes are found by boxes with a score above 0.3 and an IoU of 0.5.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
from coco_file import CocoFile
from PIL import Image, ImageDraw
from sklearn.datasets import load_sample_images

SHAPES = ('disc', 'square', 'triangle')
SMALL, LARGE = (192, 192), (1536, 1152)  # width and height
SIDES = 8, 20  # smallest and largest side of a shape in pixels
DENSITY = 6.7e-5  # shapes per pixel
MIN_SCORE, MIN_IOU = 0.3, 0.5  # of a box that finds a shape


def draw_image(
    rng: np.random.Generator, size: tuple[int, int]
) -> tuple[Image.Image, list[tuple[int, tuple[int, int, int, int]]]]:
    """A part of a photograph with shapes, their classes and boxes (x, y, width, height)."""
    photo = Image.fromarray(load_sample_images().images[rng.integers(2)])
    if size == SMALL:
        x, y = (rng.integers(whole - side) for whole, side in zip(photo.size, size, strict=True))
        image = photo.crop((x, y, x + size[0], y + size[1]))
    else:
        image = photo.resize(size)
    draw, objects = ImageDraw.Draw(image), []
    for _ in range(max(round(size[0] * size[1] * DENSITY * rng.uniform(0.7, 1.3)), 1)):
        side, label = int(rng.integers(*SIDES)), int(rng.integers(len(SHAPES)))
        left, top = (int(rng.integers(whole - side)) for whole in size)
        color = tuple(rng.integers(0, 256, 3).tolist())
        right, bottom = left + side, top + side
        if SHAPES[label] == 'disc':
            draw.ellipse((left, top, right, bottom), color)
        elif SHAPES[label] == 'square':
            draw.rectangle((left, top, right, bottom), color)
        else:
            draw.polygon([(left, bottom), (right, bottom), ((left + right) / 2, top)], color)
        # Pillow also draws the right and the bottom edge.
        objects.append((label, (left, top, side + 1, side + 1)))
    return image, objects


def write(folder: Path, part: str, number: int, size: tuple[int, int], seed: int) -> Path:
    """Write images and their boxes as COCO. Returns the file of the boxes."""
    rng = np.random.default_rng(seed)
    (folder / part).mkdir(parents=True)
    coco = CocoFile(SHAPES)
    for i in range(number):
        image, objects = draw_image(rng, size)
        image.save(folder / f'{part}/{i:03}.png')
        coco.add_image(f'{i:03}.png', *size)
        for label, box in objects:
            coco.add(label, box)
    target = folder / f'annotations/instances_{part}.json'
    coco.write(target)
    return target


def score(truth: Path, predictions: Path) -> str:
    """Average precision of predictions in ``infer``'s JSON, and how many objects are found.

    Args:
        truth: a file of COCO annotations.
        predictions: the file of ``infer --out``.
    """
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
        sure_boxes = [box for box in boxes if box['score'] > MIN_SCORE]
        if not boxes:  # COCO's code fails without boxes
            return f'AP 0.0, found 0 of {len(coco.anns)}, further boxes 0'
        evaluation = COCOeval(coco, coco.loadRes(boxes), 'bbox')
        evaluation.params.maxDets = [1, 100, 1000]
        evaluation.evaluate()
        evaluation.accumulate()
        found = count_found(coco, sure_boxes) if sure_boxes else 0
    # The axes are IoU, recall, class, area and number of boxes: all areas, and 1000 boxes.
    precision = evaluation.eval['precision'][:, :, :, 0, -1]
    return (
        f'AP {100 * precision[precision > -1].mean():.1f}, found {found} of '
        f'{len(coco.anns)}, further boxes {len(sure_boxes) - found}'
    )


def count_found(coco: Any, boxes: Sequence[Mapping[str, Any]]) -> int:
    """The number of objects that boxes find, by the matches of COCO's code.

    Args:
        coco: the annotations, a ``pycocotools.coco.COCO``.
        boxes: at least one box in COCO's form of a prediction.
    """
    from pycocotools.cocoeval import COCOeval

    evaluation = COCOeval(coco, coco.loadRes([*boxes]), 'bbox')
    evaluation.params.maxDets, evaluation.params.iouThrs = [1000], np.array([MIN_IOU])
    evaluation.params.areaRng, evaluation.params.areaRngLbl = [[0, 1e10]], ['all']
    evaluation.evaluate()
    matches = [image['dtMatches'][0] for image in evaluation.evalImgs if image]
    return int((np.concatenate(matches) > 0).sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition('\n\n')[0])
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
