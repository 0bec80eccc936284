"""The default detector next to ultralytics' smallest, from scratch: AP after some minutes.

    python -m venv yolo && yolo/bin/pip install ultralytics==8.4.190
    python benchmarks yolo BCCD --yolo yolo/bin/yolo [--minutes 5 15 30] [--seeds 3]

``vit-plugin train --data`` and ``yolo train`` get the same images and longer side, and a core for
each training. Ultralytics is under AGPL and runs as a program. Each side learns for the number of
epochs that fills the minutes of its processor's time, as two short trainings tell, by its own
schedule and with its own augmentation. COCO's code judges the best checkpoint of both on the images
to validate.
"""

import argparse
import contextlib
import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

import yaml
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from vit_plugin.config import read_config

COMMAND = (sys.executable, '-m', 'vit_plugin')
THREADS = ('OMP_NUM_THREADS', 'MKL_NUM_THREADS', 'OPENBLAS_NUM_THREADS')
CORES: SimpleQueue[int] = SimpleQueue()  # those where nothing is trained
SHORT = 3  # epochs more of the second training that tells the time of one


class Side(NamedTuple):
    """One of the programs that are compared.

    Attributes:
        train: a folder to write into, epochs and a seed -> the command.
        judge: the folder -> AP and AP50 of the best checkpoint, in per cent.
    """

    train: Callable[[Path, int, int], Sequence[str]]
    judge: Callable[[Path], Sequence[float]]

    def learn(self, folder: Path, epochs: int, seed: int) -> float:
        """Train, and return the minutes of processor time."""
        return run(self.train(folder, epochs, seed)) / 60

    def times(self, folder: Path) -> tuple[float, float]:
        """The minutes of a start, and of an epoch."""
        one = self.learn(folder / 'one', 1, 0)
        epoch = (self.learn(folder / 'few', 1 + SHORT, 0) - one) / SHORT
        return one - epoch, epoch


def run(command: Sequence[str]) -> float:
    """Run a command on a core that is free, and return its processor time in seconds."""
    core = CORES.get()
    try:
        with tempfile.TemporaryFile() as log:
            process = subprocess.Popen(
                ['taskset', '-c', str(core), *command],
                env=os.environ | dict.fromkeys(THREADS, '1'),
                stdout=log,
                stderr=log,
            )
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                log.seek(0)
                raise RuntimeError(log.read().decode(errors='replace')[-3000:])
    finally:
        CORES.put(core)
    return usage.ru_utime + usage.ru_stime


def as_yolo(lists: Path, photos: Path, folder: Path) -> Path:
    """The photographs and boxes of ``train.json`` and ``val.json`` for ultralytics. Returns the
    file that describes them.
    """
    for split in ('train', 'val'):
        content = COCO(lists / f'{split}.json')
        images, labels = folder / 'images' / split, folder / 'labels' / split
        images.mkdir(parents=True)
        labels.mkdir(parents=True)
        for number, image in content.imgs.items():
            rows = []
            for each in content.imgToAnns[number]:
                x, y, w, h = each['bbox']
                place = content.getCatIds().index(each['category_id'])
                across, down = (x + w / 2, w), (y + h / 2, h)
                (x, w), (y, h) = (
                    [number / image[side] for number in numbers]
                    for side, numbers in (('width', across), ('height', down))
                )
                rows.append(f'{place} {x} {y} {w} {h}\n')
            suffix = Path(image['file_name']).suffix
            (images / f'{number}{suffix}').symlink_to(photos / image['file_name'])
            (labels / f'{number}.txt').write_text(''.join(rows))
    names = [category['name'] for category in content.loadCats(content.getCatIds())]
    parts = dict(path=str(folder), train='images/train', val='images/val')
    data = folder / 'data.yaml'
    data.write_text(yaml.safe_dump(dict(parts, names=names)))
    return data


def ultralytics(program: str, model: str, data: Path, lists: Path, size: int) -> Side:
    """A model of ultralytics, with the settings that ``yolo train`` has by itself."""
    common = [f'data={data}', f'imgsz={size}', 'device=cpu', 'workers=0', 'plots=False']

    def train(folder: Path, epochs: int, seed: int) -> Sequence[str]:
        named = [f'model={model}.yaml', f'epochs={epochs}', f'seed={seed}']
        return [program, 'detect', 'train', *named, *common, f'project={folder}', 'name=run']

    def judge(folder: Path) -> Sequence[float]:
        best = [f'model={folder}/run/weights/best.pt', 'save_json=True']
        run([program, 'detect', 'val', *best, *common, f'project={folder}', 'name=val'])
        found = json.loads((folder / 'val' / 'predictions.json').read_text())
        truth = COCO(lists / 'val.json')
        for each in found:
            each['category_id'] = truth.getCatIds()[each['category_id'] - 1]
        judged = COCOeval(truth, truth.loadRes(found), 'bbox')
        judged.evaluate()
        judged.accumulate()
        judged.summarize()
        return [100 * value for value in judged.stats[:2]]

    return Side(train, judge)


def ours(data: Path, size: int, options: Sequence[str]) -> Side:
    """The detector of ``vit-plugin train --data``."""

    def train(folder: Path, epochs: int, seed: int) -> Sequence[str]:
        named = ['--data', str(data), '--task', 'detection', '--epochs', str(epochs), *options]
        where = ['--img-size', str(size), '--work-dir', f'{folder}/run']
        workers = [f'{split}_dataloader.num_workers=0' for split in ('train', 'val')]
        settings = [f'randomness.seed={seed}', *workers]
        process = ['--no-persistent-workers', '--cfg-options', *settings]
        return [*COMMAND, 'train', *named, *where, *process]

    def judge(folder: Path) -> Sequence[float]:
        out = folder / 'metrics.json'
        run([*COMMAND, 'test', f'{folder}/run', '--out', str(out), '--out-item', 'metrics'])
        metrics = json.loads(out.read_text())
        return [metrics[f'coco/bbox_mAP{which}'] for which in ('', '_50')]

    return Side(train, judge)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('data', type=Path, help='images with boxes, as train --data reads them')
    parser.add_argument('--yolo', default='yolo', help='the program of ultralytics')
    parser.add_argument('--models', nargs='+', default=['yolo11n', 'yolo26n'], metavar='MODEL')
    parser.add_argument('--minutes', nargs='+', type=float, default=[5, 15, 30])
    parser.add_argument('--seeds', type=int, default=3)
    parser.add_argument('--size', type=int, default=256, help='longer side of the images')
    parser.add_argument('--ours', nargs='*', default=[], help='options of vit-plugin train')
    args = parser.parse_args()
    cores, output = os.sched_getaffinity(0), sys.stdout
    for core in cores:
        CORES.put(core)
    with (
        tempfile.TemporaryDirectory() as name,
        ThreadPoolExecutor(len(cores)) as pool,
        contextlib.redirect_stdout(io.StringIO()),  # COCO's code prints
    ):
        folder = Path(name)
        lists, data = folder / 'lists', args.data.resolve()
        check = ['--data', str(data), '--task', 'detection', '--check', '--work-dir', str(lists)]
        run([*COMMAND, 'train', *check])
        dataset = read_config(f'{lists}/config.py').train_dataloader.dataset
        yolo_data = as_yolo(lists, Path(dataset.data_prefix.img), folder / 'yolo')
        sides = dict(vit_plugin=ours(data, args.size, args.ours)) | {
            model: ultralytics(args.yolo, model, yolo_data, lists, args.size)
            for model in args.models
        }
        times = dict(
            zip(sides, pool.map(lambda one: sides[one].times(folder / one), sides), strict=True)
        )
        for side, (start, epoch) in times.items():
            said = f'{side}: {60 * start:.0f} s to start, {60 * epoch:.1f} s for an epoch'
            print(said, file=output, flush=True)

        def result(side: str, minutes: float, seed: int) -> list[float]:
            start, epoch = times[side]
            epochs = max(1, round((minutes - start) / epoch))
            where = folder / side / f'{minutes}_{seed}'
            spent = sides[side].learn(where, epochs, seed)
            return [spent, epochs, *sides[side].judge(where)]

        for minutes in args.minutes:
            jobs = {
                side: [pool.submit(result, side, minutes, seed) for seed in range(args.seeds)]
                for side in sides
            }
            for side, started in jobs.items():
                spent, epochs, ap, ap50 = zip(*(job.result() for job in started), strict=True)
                print(
                    f'{side}: {statistics.mean(spent):.1f} minutes, {epochs[0]} epochs, '
                    f'AP {", ".join(f"{value:.1f}" for value in ap)}, '
                    f'AP50 {", ".join(f"{value:.1f}" for value in ap50)}',
                    file=output,
                    flush=True,
                )


if __name__ == '__main__':
    main()
