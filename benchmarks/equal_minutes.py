"""Trainings of several programs or models in the same minutes of processor time.

Each learns on a core of its own, in one thread, for the number of epochs that fills the minutes,
estimated from short trainings.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

COMMAND = (sys.executable, '-m', 'vit_plugin')
THREADS = ('OMP_NUM_THREADS', 'MKL_NUM_THREADS', 'OPENBLAS_NUM_THREADS')
METRICS = dict(
    classification={'top-1': 'accuracy/top1'},
    detection=dict(AP='coco/bbox_mAP', AP50='coco/bbox_mAP_50'),
    instance={'mask AP': 'coco/segm_mAP', 'mask AP50': 'coco/segm_mAP_50'},
    segmentation=dict(mIoU='mIoU'),
)
EXTRA_EPOCHS = 2  # in a second short training, whose additional time is that of the epochs


class Cores(SimpleQueue[int]):
    """The cores where nothing is trained."""

    def __init__(self) -> None:
        super().__init__()
        for core in os.sched_getaffinity(0):
            self.put(core)

    def run(self, command: Sequence[str]) -> float:
        """Run a command on one of them, and return its processor time in seconds.

        Raises:
            RuntimeError: the command failed, with the end of what it printed.
        """
        core = self.get()
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
            self.put(core)
        return usage.ru_utime + usage.ru_stime


class Side(NamedTuple):
    """One of the programs or models that are compared.

    Attributes:
        train: a folder to write into, epochs and a seed -> the command.
        judge: the folder, and what runs a command -> the metrics, in per cent.
    """

    train: Callable[[Path, int, int], Sequence[str]]
    judge: Callable[[Path, Callable[[Sequence[str]], float]], Mapping[str, float]]


def vit_plugin(
    data: Path,
    task: str,
    options: Sequence[str],
    one_validation: bool,
    more: Sequence[str] = (),
) -> Side:
    """``vit-plugin train --data`` with these options, validated after each epoch or at its end.

    ``more`` are further settings of its config.
    """

    def train(folder: Path, epochs: int, seed: int) -> Sequence[str]:
        named = ['--data', str(data), '--task', task, '--epochs', str(epochs), *options]
        workers = [f'{split}_dataloader.num_workers=0' for split in ('train', 'val')]
        settings = [f'randomness.seed={seed}', *workers, *more]
        if one_validation:
            settings.append(f'train_cfg.val_interval={epochs}')
        process = ['--no-persistent-workers', '--work-dir', f'{folder}/run']
        return [*COMMAND, 'train', *named, *process, '--cfg-options', *settings]

    def judge(folder: Path, run: Callable[[Sequence[str]], float]) -> Mapping[str, float]:
        out = folder / 'metrics.json'
        run([*COMMAND, 'test', f'{folder}/run', '--out', str(out), '--out-item', 'metrics'])
        metrics = json.loads(out.read_text())
        return {name: metrics[key] for name, key in METRICS[task].items()}

    return Side(train, judge)


def compare(
    sides: Mapping[str, Side],
    minutes: Sequence[float],
    seeds: int,
    cores: Cores,
    folder: Path,
    counts_start: bool = True,
) -> Iterator[str]:
    """Train all sides for all minutes with all seeds. Yields a line for each result.

    Args:
        counts_start: whether the minutes include those of a program's start.
    """

    def learn(side: str, where: str, epochs: int, seed: int) -> float:
        return cores.run(sides[side].train(folder / side / where, epochs, seed)) / 60

    def times(side: str) -> tuple[float, float]:
        """The minutes of a start, and of an epoch."""
        one, extra = learn(side, 'one', 1, 0), EXTRA_EPOCHS
        # The time of a start varies by seconds, so the epochs must take a good part of it.
        while (added := learn(side, f'{extra}_more', 1 + extra, 0) - one) < one / 3:
            extra *= 4
        return one - added / extra, added / extra

    def result(side: str, limit: float, seed: int) -> tuple[float, int, Mapping[str, float]]:
        start, epoch = known[side]
        learning = limit - start if counts_start else limit
        epochs = max(1, round(learning / epoch))
        where = f'{limit}_{seed}'
        spent = learn(side, where, epochs, seed)
        return spent, epochs, sides[side].judge(folder / side / where, cores.run)

    with ThreadPoolExecutor(cores.qsize()) as pool:
        known = dict(zip(sides, pool.map(times, sides), strict=True))
        for side, (start, epoch) in known.items():
            yield f'{side}: {60 * start:.0f} s to start, {60 * epoch:.1f} s for an epoch'
        jobs = {
            (side, limit): [pool.submit(result, side, limit, seed) for seed in range(seeds)]
            for limit in minutes
            for side in sides
        }
        for (side, _), started in jobs.items():
            spent, epochs, metrics = zip(*(job.result() for job in started), strict=True)
            said = ', '.join(
                spread(name, [found[name] for found in metrics]) for name in metrics[0]
            )
            yield f'{side}: {statistics.mean(spent):.1f} minutes, {epochs[0]} epochs, {said}'


def spread(name: str, values: Sequence[float]) -> str:
    """The mean of a metric, its deviation over seeds, and all its values."""
    each = ', '.join(f'{value:.1f}' for value in values)
    if len(values) == 1:
        return f'{name} {each}'
    return f'{name} {statistics.mean(values):.1f} ± {statistics.stdev(values):.1f} ({each})'
