"""Train and evaluate detectors of ultralytics for comparisons with those of this package.

Ultralytics is under the AGPL, so it runs as a separate program. It trains with its own schedule and
augmentation, on the same images at the same longer side as ``vit-plugin train --data``. The best
checkpoints of both are evaluated on the validation images by COCO's code.
"""

import contextlib
import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import yaml
from matplotlib.figure import Figure
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from anyfolder.pictures.palette import SERIES
from benchmarks.equal_minutes import COMMAND, METRICS, Contender, Cores
from vit_plugin.config import read_config
from vit_plugin.report.pictures.style import charts


def as_yolo(lists: Path, photos: Path, folder: Path) -> Path:
    """Write images and boxes in ultralytics' form.

    Args:
        lists: the folder of ``train.json`` and ``val.json``, COCO annotations.
        photos: the folder of the images, which are linked.
        folder: where they are written.

    Returns:
        The file that describes the data to ultralytics.
    """
    for split in ('train', 'val'):
        content = COCO(lists / f'{split}.json')
        images, labels = folder / 'images' / split, folder / 'labels' / split
        images.mkdir(parents=True)
        labels.mkdir(parents=True)
        for number, image in content.imgs.items():
            rows = []
            for annotation in content.imgToAnns[number]:
                left, top, width, height = annotation['bbox']
                label = content.getCatIds().index(annotation['category_id'])
                # The center and the size of the box, as fractions of the image.
                x, w = ((left + width / 2) / image['width'], width / image['width'])
                y, h = ((top + height / 2) / image['height'], height / image['height'])
                rows.append(f'{label} {x} {y} {w} {h}\n')
            suffix = Path(image['file_name']).suffix
            (images / f'{number}{suffix}').symlink_to(photos / image['file_name'])
            (labels / f'{number}.txt').write_text(''.join(rows))
    names = [category['name'] for category in content.loadCats(content.getCatIds())]
    parts = dict(path=str(folder), train='images/train', val='images/val')
    data = folder / 'data.yaml'
    data.write_text(yaml.safe_dump(dict(parts, names=names)))
    return data


def ultralytics(program: str, model: str, data: Path, lists: Path, size: int) -> Contender:
    """A model of ultralytics, with the default settings of ``yolo train``.

    Args:
        program: the path of ``yolo``.
        model: name of the model, such as ``yolo11n``.
        data: the file of :func:`as_yolo`.
        lists: the folder of the COCO annotations.
        size: longer side of the images in pixels.
    """
    common = [f'data={data}', f'imgsz={size}', 'device=cpu', 'workers=0', 'plots=False']

    def train(folder: Path, epochs: int, seed: int) -> Sequence[str]:
        named = [f'model={model}.yaml', f'epochs={epochs}', f'seed={seed}']
        return [program, 'detect', 'train', *named, *common, f'project={folder}', 'name=run']

    def evaluate(folder: Path, run: Callable[[Sequence[str]], float]) -> Mapping[str, float]:
        best = [f'model={folder}/run/weights/best.pt', 'save_json=True']
        run([program, 'detect', 'val', *best, *common, f'project={folder}', 'name=val'])
        predictions = json.loads((folder / 'val' / 'predictions.json').read_text())
        if not predictions:  # COCO's code fails without boxes
            return dict.fromkeys(METRICS['detection'], 0.0)
        truth = COCO(lists / 'val.json')
        for box in predictions:
            # ultralytics counts the categories from 1.
            box['category_id'] = truth.getCatIds()[box['category_id'] - 1]
        with contextlib.redirect_stdout(io.StringIO()):
            evaluation = COCOeval(truth, truth.loadRes(predictions), 'bbox')
            evaluation.evaluate()
            evaluation.accumulate()
            evaluation.summarize()
        return dict(zip(METRICS['detection'], 100 * evaluation.stats, strict=False))

    return Contender(train, evaluate)


def ap_over_minutes(run: Path) -> list[tuple[float, float]]:
    """Minutes of training, and AP in per cent, after each epoch of a run of either program."""
    with (run / 'results.csv').open() as file:
        rows = list(csv.DictReader(file))
    seconds, ap, unit = (
        ('seconds', 'coco/bbox_mAP', 1)
        if 'seconds' in rows[0]
        else ('time', 'metrics/mAP50-95(B)', 100)
    )
    return [(float(row[seconds]) / 60, unit * float(row[ap])) for row in rows if row[ap]]


def draw(runs: Mapping[str, Sequence[Path]]) -> Figure:
    """Draw AP over the minutes: a line for each run, in the color of its model."""
    figure, (axes,) = charts(7, 4)
    axes.set(xlabel='minutes of training, one core', ylabel='validation AP', ylim=(0, 65))
    for color, (side, folders) in zip(SERIES, runs.items(), strict=False):
        for number, folder in enumerate(folders):
            points = ap_over_minutes(folder)
            axes.plot(*zip(*points, strict=True), color=color, label=side if not number else None)
            axes.plot(*points[-1], marker='o', color=color)
    axes.legend(frameon=False, loc='lower right')
    return figure


def ultralytics_sides(
    program: str, models: Sequence[str], data: Path, size: int, cores: Cores, folder: Path
) -> dict[str, Contender]:
    """The models to compare, by name, with the data of a folder that ``train --data`` reads.

    Args:
        program: the path of ``yolo``.
        models: names such as ``yolo11n``.
        data: the folder.
        size: longer side of the images in pixels.
        cores: runs the command that reads the folder.
        folder: an empty folder for the images and labels in ultralytics' form.
    """
    lists = folder / 'lists'
    check = ['--data', str(data), '--task', 'detection', '--check', '--work-dir', str(lists)]
    cores.run([*COMMAND, 'train', *check])
    dataset = read_config(f'{lists}/config.py').train_dataloader.dataset
    with contextlib.redirect_stdout(io.StringIO()):  # COCO's code prints
        converted = as_yolo(lists, Path(dataset.data_prefix.img), folder / 'yolo')
    return {model: ultralytics(program, model, converted, lists, size) for model in models}
