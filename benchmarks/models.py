"""Models of a task side by side: the metric of each in the same minutes of training.

    python benchmarks models --data FOLDER --models retinanet,lw-detr,rf-detr [--arch Ti/16]
        [--task detection] [--minutes 15] [--seeds 3]

Each is trained by `vit-plugin train --data FOLDER --model NAME`. Its epochs follow from the time of
one, which is that of a training of three epochs less that of one; so they include neither the start
nor validations. A model is validated once, at the end. Nothing else should run meanwhile.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

METRICS = dict(detection='coco/bbox_mAP', instance='coco/segm_mAP', segmentation='mIoU')


def train(args: argparse.Namespace, model: str, epochs: int, folder: Path, *more: str) -> float:
    """The seconds of a training in this folder."""
    flags = ['--data', args.data, '--task', args.task, '--model', model, '--epochs', str(epochs)]
    flags += ['--arch', args.arch] if args.arch else []
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, '-m', 'vit_plugin', 'train', *flags, '--work-dir', str(folder), *more],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return time.perf_counter() - start


def epochs_in(minutes: float, one: float, three: float) -> int:
    """The epochs of so many minutes, by the seconds of trainings of one epoch and of three."""
    return max(round(60 * minutes / max((three - one) / 2, 1e-3)), 1)


def last_metric(folder: Path, name: str) -> float:
    """The metric of the only validation of a run."""
    return float(json.loads((folder / 'metrics.json').read_text())['last'][name])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--data', required=True)
    parser.add_argument('--task', choices=METRICS, default='detection')
    parser.add_argument('--models', required=True, help='names, with commas between them')
    parser.add_argument('--arch', help='the backbone; default: a small hybrid')
    parser.add_argument('--minutes', type=float, default=15)
    parser.add_argument('--seeds', type=int, default=3)
    parser.add_argument('--out', type=Path, default=Path('work_dirs/models'))
    args = parser.parse_args()
    for model in args.models.split(','):
        one, three = (
            train(args, model, epochs, args.out / f'{model}-{epochs}-epochs', '--no-validate')
            for epochs in (1, 3)
        )
        epochs, found = epochs_in(args.minutes, one, three), []
        for seed in range(args.seeds):
            folder = args.out / f'{model}-seed-{seed}'
            options = [f'randomness.seed={seed}', f'train_cfg.val_interval={epochs}']
            seconds = train(args, model, epochs, folder, '--cfg-options', *options)
            found.append(last_metric(folder, METRICS[args.task]))
            print(
                f'{model}, seed {seed}: {epochs} epochs, {seconds / 60:.1f} minutes, '
                f'{METRICS[args.task]} {found[-1]:.4g}',
                flush=True,
            )
        deviation = statistics.stdev(found) if len(found) > 1 else 0.0
        print(f'{model}: {statistics.mean(found):.4g} ± {deviation:.2g}', flush=True)


if __name__ == '__main__':
    main()
