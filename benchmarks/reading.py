"""How fast other people's data is read: seconds, processor seconds and memory of ``train --check``.

    python benchmarks reading [--cases images table coco labelme] [--share 0.01] [--other PYTHON]

It draws the data, and reads each case in a process of its own: once with all images decoded, of the
table a sample, and again with what the first check remembers. Memory is the peak above what a tiny
folder of the same kind takes, which has imported everything, without the processes that decode.
``--other`` is the Python of an environment with datumaro and supervision, which then read the same
files; neither reads a table. Most of the time is for drawing 200,000 images.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np

TINY = 40  # images or boxes of the folder that is read before
CLASSES, BOXES = 5, 10  # of all images, and in each

OURS = """
from contextlib import redirect_stdout
import io
from vit_plugin.from_folder.request import Request
from vit_plugin.from_folder.write import write_config
def read(folder):
    task = dict(coco='detection', labelme='detection').get({case!r}, 'classification')
    with redirect_stdout(io.StringIO()):
        write_config(Request(folder, task, work_dir=folder + '_run'), check={case!r} != 'table')
"""
DATUMARO = """
from datumaro.components.dataset import Dataset
def read(folder):
    kind = dict(coco='coco', images='imagenet')[{case!r}]
    for item in Dataset.import_from(folder, kind):
        item.media.data, item.annotations
"""
SUPERVISION = """
import supervision
def read(folder):
    if {case!r} == 'coco':
        found = supervision.DetectionDataset.from_coco(
            folder + '/images/train', folder + '/annotations/instances_train.json')
    else:
        found = supervision.ClassificationDataset.from_folder_structure(folder)
    for path, image, annotation in found:
        pass
"""
MEASURED = """
import json, os, resource, sys, time
def used():
    own, others = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    seconds = own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime
    return time.perf_counter(), seconds, own.ru_maxrss / 1024
tiny, folder = sys.argv[1:]
read(tiny)
rows = []
for _ in range({times}):
    before = used()
    read(folder)
    rows.append([after - start for start, after in zip(before, used())])
print(json.dumps(rows))
"""


def drawn(random: np.random.Generator, height: int, width: int) -> np.ndarray:
    """A smooth image (height, width, 3)."""
    values = random.integers(0, 255, (6, 6, 3)).astype(np.uint8)
    return cv2.resize(values, (width, height), interpolation=cv2.INTER_CUBIC)


def write_images(folder: Path, number: int) -> None:
    """Folders of classes with PNGs of 64 x 64 pixels."""
    random = np.random.default_rng(0)
    for i in range(number):
        place = folder / f'class{i % CLASSES}'
        place.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(place / f'{i:06}.png'), drawn(random, 64, 64))


def write_table(folder: Path, number: int) -> None:
    """PNGs of 8 x 8 pixels, and a CSV with a row for each."""
    random = np.random.default_rng(0)
    (folder / 'images').mkdir(parents=True)
    for i in range(number):
        cv2.imwrite(str(folder / f'images/{i:06}.png'), drawn(random, 8, 8))
    rows = ''.join(f'{i:06}.png,class{i % CLASSES}\n' for i in range(number))
    (folder / 'labels.csv').write_text(f'file,label\n{rows}')


def write_coco(folder: Path, number: int) -> None:
    """So many boxes of COCO, ten in each image of 128 x 96 pixels."""
    random = np.random.default_rng(0)
    for name in ('images/train', 'annotations'):
        (folder / name).mkdir(parents=True)
    images, annotations = [], []
    for i in range(1, number // BOXES + 1):
        cv2.imwrite(str(folder / f'images/train/{i:06}.png'), drawn(random, 96, 128))
        images.append(dict(id=i, file_name=f'{i:06}.png', width=128, height=96))
        for k in range(BOXES):
            (left, top), (width, height) = random.integers(0, 60, 2), random.integers(8, 36, 2)
            box = [*map(int, (left, top, width, height))]
            annotations.append(
                dict(
                    id=len(annotations) + 1,
                    image_id=i,
                    category_id=k % CLASSES + 1,
                    bbox=box,
                    area=box[2] * box[3],
                    iscrowd=0,
                    segmentation=[],
                )
            )
    categories = [dict(id=i + 1, name=f'class{i}') for i in range(CLASSES)]
    (folder / 'annotations/instances_train.json').write_text(
        json.dumps(dict(images=images, annotations=annotations, categories=categories))
    )


def write_labelme(folder: Path, number: int) -> None:
    """LabelMe files with the pixels of their images, of 1600 x 1200, in them."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(0)
    for i in range(number):
        pixels = random.integers(0, 255, (1200, 1600, 3)).astype(np.uint8)
        content = cv2.imencode('.png', pixels, [cv2.IMWRITE_PNG_COMPRESSION, 0])[1].tobytes()
        (folder / f'{i:03}.png').write_bytes(content)
        shape = dict(label='ab'[i % 2], shape_type='rectangle', points=[[10, 10], [200, 200]])
        said = dict(imagePath=f'{i:03}.png', shapes=[shape], imageData=b64encode(content).decode())
        (folder / f'{i:03}.json').write_text(json.dumps(said))


# How each case is drawn, of how many, and what of other libraries reads it.
CASES: dict[str, tuple[Callable[[Path, int], None], int, dict[str, str]]] = dict(
    images=(write_images, 20_000, dict(datumaro=DATUMARO, supervision=SUPERVISION)),
    table=(write_table, 200_000, {}),
    coco=(write_coco, 50_000, dict(datumaro=DATUMARO, supervision=SUPERVISION)),
    labelme=(write_labelme, 60, {}),
)


def measure(
    python: str, program: str, case: str, tiny: Path, folder: Path, times: int
) -> list[list[float]]:
    """Seconds, processor seconds and MB of reading a folder, so many times."""
    code = program.format(case=case) + MEASURED.format(times=times)
    answer = subprocess.run(
        [python, '-c', code, str(tiny), str(folder)], check=True, capture_output=True, text=True
    )
    return json.loads(answer.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('--cases', nargs='+', choices=CASES, default=[*CASES])
    parser.add_argument('--share', type=float, default=1.0, help='of the images, to try it')
    parser.add_argument('--other', help='a Python with datumaro and supervision')
    args = parser.parse_args()
    for case in args.cases:
        write, number, others = CASES[case]
        with tempfile.TemporaryDirectory() as place:
            tiny, folder = Path(place, 'tiny'), Path(place, 'data')
            write(tiny, min(TINY, number))
            write(folder, max(int(args.share * number), TINY))
            first, again = measure(sys.executable, OURS, case, tiny, folder, 2)
            rows = {'ours': first, 'ours, again': again}
            for name, program in others.items() if args.other else ():
                rows[name] = measure(args.other, program, case, tiny, folder, 1)[0]
        for name, (seconds, processor, memory) in rows.items():
            print(
                f'{case:<9}{name:<13}{seconds:7.1f} s {processor:7.1f} s of processors '
                f'{memory:6.0f} MB',
                flush=True,
            )
    print(f'Load of {os.cpu_count()} cores at the end: {os.getloadavg()[0]:.1f}')


if __name__ == '__main__':
    main()
