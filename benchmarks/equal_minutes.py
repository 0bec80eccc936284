"""Compare trainings of several programs or models in the same minutes of CPU time.

Each training has a core of its own and one thread, and takes the number of epochs that fills the
minutes, estimated from short trainings. ``models.py``, ``transfer.py`` and ``ultralytics_side.py``
use it.
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
THREAD_VARIABLES = ('OMP_NUM_THREADS', 'MKL_NUM_THREADS', 'OPENBLAS_NUM_THREADS')
# Task -> printed name of a metric -> its key in the metrics of ``vit-plugin test``.
METRICS = dict(
    classification={'top-1': 'accuracy/top1'},
    detection=dict(AP='coco/bbox_mAP', AP50='coco/bbox_mAP_50'),
    instance={'mask AP': 'coco/segm_mAP', 'mask AP50': 'coco/segm_mAP_50'},
    segmentation=dict(mIoU='mIoU'),
)
EXTRA_EPOCHS = 2  # of a second short training: its additional time is theirs


class Cores(SimpleQueue[int]):
    """A queue of the idle cores. A command takes one and returns it."""

    def __init__(self) -> None:
        super().__init__()
        for core in os.sched_getaffinity(0):
            self.put(core)

    def run(self, command: Sequence[str]) -> float:
        """Run a command on one of them, and return its CPU time in seconds.

        Raises:
            RuntimeError: if the command fails, with the end of its output.
        """
        core = self.get()
        try:
            with tempfile.TemporaryFile() as log:
                process = subprocess.Popen(
                    ['taskset', '-c', str(core), *command],
                    env=os.environ | dict.fromkeys(THREAD_VARIABLES, '1'),
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


class Contender(NamedTuple):
    """One of the programs or models that are compared.

    Attributes:
        train: (folder to write into, epochs, seed) -> the command that trains.
        evaluate: (the folder, a function that runs a command) -> the metrics in percent.
    """

    train: Callable[[Path, int, int], Sequence[str]]
    evaluate: Callable[[Path, Callable[[Sequence[str]], float]], Mapping[str, float]]


def plugin_contender(
    data: Path,
    task: str,
    options: Sequence[str],
    one_validation: bool,
    cfg_options: Sequence[str] = (),
) -> Contender:
    """A contender that trains by ``vit-plugin train --data``.

    Args:
        data: the data folder.
        task: a key of :data:`METRICS`.
        options: further flags of ``vit-plugin train``.
        one_validation: whether to validate only at the end, not after each epoch.
        cfg_options: further settings of its config.
    """

    def train(folder: Path, epochs: int, seed: int) -> Sequence[str]:
        named = ['--data', str(data), '--task', task, '--epochs', str(epochs), *options]
        workers = [f'{split}_dataloader.num_workers=0' for split in ('train', 'val')]
        settings = [f'randomness.seed={seed}', *workers, *cfg_options]
        if one_validation:
            settings.append(f'train_cfg.val_interval={epochs}')
        process = ['--no-persistent-workers', '--work-dir', f'{folder}/run']
        return [*COMMAND, 'train', *named, *process, '--cfg-options', *settings]

    def evaluate(folder: Path, run: Callable[[Sequence[str]], float]) -> Mapping[str, float]:
        out = folder / 'metrics.json'
        run([*COMMAND, 'test', f'{folder}/run', '--out', str(out), '--out-item', 'metrics'])
        metrics = json.loads(out.read_text())
        return {name: metrics[key] for name, key in METRICS[task].items()}

    return Contender(train, evaluate)


def compare(
    contenders: Mapping[str, Contender],
    minutes: Sequence[float],
    seeds: int,
    cores: Cores,
    folder: Path,
    counts_start: bool = True,
) -> Iterator[str]:
    """Train each contender for each of the minutes with each seed.

    Yields a line for the estimated times of each contender, and a line for each result.

    Args:
        contenders: what to compare, by name.
        minutes: CPU minutes of a training; each of them is compared.
        seeds: number of seeds.
        cores: the cores to train on.
        folder: the folder for the runs.
        counts_start: whether the minutes include the start of the program.
    """

    def minutes_of(name: str, run: str, epochs: int, seed: int) -> float:
        return cores.run(contenders[name].train(folder / name / run, epochs, seed)) / 60

    def estimate(name: str) -> tuple[float, float]:
        """The minutes of a start, and of an epoch."""
        one, extra = minutes_of(name, 'one', 1, 0), EXTRA_EPOCHS
        # The start's time varies by seconds, so the extra epochs must take a good part of it.
        while (added := minutes_of(name, f'{extra}_more', 1 + extra, 0) - one) < one / 3:
            extra *= 4
        return one - added / extra, added / extra

    def result(name: str, limit: float, seed: int) -> tuple[float, int, Mapping[str, float]]:
        start, epoch = estimates[name]
        for_epochs = limit - start if counts_start else limit
        epochs = max(1, round(for_epochs / epoch))
        run = f'{limit}_{seed}'
        spent = minutes_of(name, run, epochs, seed)
        return spent, epochs, contenders[name].evaluate(folder / name / run, cores.run)

    with ThreadPoolExecutor(cores.qsize()) as pool:
        estimates = dict(zip(contenders, pool.map(estimate, contenders), strict=True))
        for name, (start, epoch) in estimates.items():
            yield f'{name}: {60 * start:.0f} s to start, {60 * epoch:.1f} s for an epoch'
        jobs = {
            (name, limit): [pool.submit(result, name, limit, seed) for seed in range(seeds)]
            for limit in minutes
            for name in contenders
        }
        for (name, _), started in jobs.items():
            spent, epochs, metrics = zip(*(job.result() for job in started), strict=True)
            scores = ', '.join(
                format_metric(metric, [found[metric] for found in metrics]) for metric in metrics[0]
            )
            yield f'{name}: {statistics.mean(spent):.1f} minutes, {epochs[0]} epochs, {scores}'


def format_metric(name: str, values: Sequence[float]) -> str:
    """The mean of a metric, its standard deviation over seeds, and the value of each seed."""
    each = ', '.join(f'{value:.1f}' for value in values)
    if len(values) == 1:
        return f'{name} {each}'
    return f'{name} {statistics.mean(values):.1f} ± {statistics.stdev(values):.1f} ({each})'
