"""Run a training over a grid of settings, with several seeds each, for ``benchmarks sweep``.

Each run has a folder with its log. A run that has ended well leaves the file ``finished`` there,
and is not repeated. ``sweep.json`` describes the grid, so that a folder is not used for two of
them.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, product
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

from anyfolder.complete import write_text
from vit_plugin.config import read_config
from vit_plugin.config.runnable import check_config
from vit_plugin.engine.faults.preemption import Preempted
from vit_plugin.engine.validation_record import RECORD
from vit_plugin.errors import ConfigError
from vit_plugin.files.untrusted_text import markdown_table

SWEEP, FINISHED, LOG = 'sweep.json', 'finished', 'sweep.log'
SEED = 'randomness.seed'
POLL_SECONDS = 0.1  # between two checks of the trainings
TRAIN_COMMAND = (sys.executable, '-m', 'vit_plugin', 'train')


class Run(NamedTuple):
    """One training.

    Attributes:
        config: path of the config.
        values: its settings of the grid, by their dotted keys.
        seed: counted from 0.
        folder: its work directory.
    """

    config: str
    values: dict[str, Any]
    seed: int
    folder: Path


def runs_of(
    configs: Sequence[str], grid: Mapping[str, Sequence[Any]], seeds: int, folder: Path
) -> Iterator[Run]:
    """All combinations of configs and values of a grid, each with several seeds.

    The runs of a combination follow one another.
    """
    for number, (config, *values) in enumerate(product(configs, *grid.values())):
        settings = dict(zip(grid, values, strict=True))
        labels = [f'{key.rpartition(".")[2]}={value}' for key, value in settings.items()]
        name = '_'.join([f'{number:03d}', Path(config).stem[:40], *labels])
        name = re.sub('[^A-Za-z0-9=.+-]', '_', name)[:100]
        for seed in range(seeds):
            yield Run(config, settings, seed, folder / f'{name}_seed{seed}')


def check(runs: Sequence[Run], options: Mapping[str, Any], folder: Path) -> None:
    """Check each combination as its training will, before anything runs.

    Args:
        runs: all trainings.
        options: settings that they share.
        folder: folder of the sweep, which gets its description.

    Raises:
        ConfigError: if the seed is a setting, a config cannot run or records no metrics, or the
            folder belongs to another sweep.
    """
    for config, values, seed, _ in runs:
        if SEED in {**options, **values}:
            raise ConfigError(f'{SEED}: each run has its own seed; leave it out and give --seeds.')
        if seed:  # seed 0 has checked this combination
            continue
        cfg = read_config(config, {**options, **values})
        cfg.work_dir = str(folder)
        check_config(cfg)
        if not cfg.get('val_dataloader') or 'ReportHook' not in str(cfg.get('custom_hooks')):
            raise ConfigError(
                f'The config {config!r} records no metrics to compare; give it a val_dataloader, '
                "val_evaluator and val_cfg, and custom_hooks=[dict(type='vit_plugin.ReportHook')]."
            )
    # Without the folders, so that a sweep may be moved.
    description = json.dumps([options, *(run[:3] for run in runs)], indent=1) + '\n'
    path = folder / SWEEP
    if path.is_file() and path.read_text() != description:
        raise ConfigError(
            f'{str(folder)!r} belongs to another sweep, which {SWEEP} there describes; give '
            'another --work-dir.'
        )
    write_text(path, description)


def train(
    runs: Sequence[Run],
    options: Mapping[str, Any],
    jobs: int,
    command: Sequence[str] = TRAIN_COMMAND,
) -> dict[Path, str]:
    """Train the runs that are not finished, ``jobs`` at a time, each with its share of the cores.

    SIGTERM is passed on to the running trainings, which save and stop.

    Args:
        runs: all trainings.
        options: settings that they share.
        jobs: number of runs at the same time.
        command: the command that trains, without its arguments.

    Returns:
        Why each failed run has failed, by its folder.

    Raises:
        Preempted: after SIGTERM, when all have stopped.
    """
    threads = max((os.cpu_count() or 1) // jobs, 1)
    env = {'OMP_NUM_THREADS': str(threads), **os.environ}
    received: list[int] = []
    previous = signal.signal(signal.SIGTERM, lambda number, frame: received.append(number))
    waiting = [run for run in runs if not (run.folder / FINISHED).is_file()]
    running: dict[Path, subprocess.Popen] = {}
    failed: dict[Path, str] = {}
    try:
        while waiting or running:
            if received:
                raise Preempted(received[0])
            while waiting and len(running) < jobs:
                run = waiting.pop(0)
                running[run.folder] = _begin(run, options, command, env)
            for folder in [folder for folder in running if running[folder].poll() is not None]:
                if status := running.pop(folder).returncode:
                    lines = (folder / LOG).read_text(errors='replace').splitlines() or ['']
                    failed[folder] = f'status {status}: {lines[-1].removeprefix("Error: ")}'
                else:
                    (folder / FINISHED).touch()
            time.sleep(POLL_SECONDS)
    finally:
        for process in running.values():
            process.terminate()
        for process in running.values():
            process.wait()
        signal.signal(signal.SIGTERM, previous)
    return failed


def _begin(
    run: Run, options: Mapping[str, Any], command: Sequence[str], env: Mapping[str, str]
) -> subprocess.Popen:
    print(f'{run.folder.name}: begins', flush=True)
    settings = {**options, **run.values, SEED: run.seed}
    line = [*command, run.config, '--work-dir', str(run.folder), '--resume', '--cfg-options']
    line += [f'{key}={value}' for key, value in settings.items()]
    run.folder.mkdir(parents=True, exist_ok=True)
    with open(run.folder / LOG, 'a') as log:
        return subprocess.Popen(line, stdout=log, stderr=subprocess.STDOUT, env=env)


def table(runs: Sequence[Run], metric: str | None = None) -> str:
    """The metric at the end of the trainings and their minutes, as Markdown.

    Args:
        runs: all trainings. Those that are not finished are left out.
        metric: name of the metric. Default: the first that is recorded.

    Raises:
        ConfigError: if a finished run has recorded no such metric.
    """
    rows = []
    # The runs of a combination differ in seed and folder alone.
    for (config, values), group in groupby(runs, lambda run: run[:2]):
        finished = [run.folder for run in group if (run.folder / FINISHED).is_file()]
        records = [json.loads((folder / RECORD).read_text()) for folder in finished]
        for record in records:
            metric = metric or next(iter(record['last']), None)
            if metric not in record['last']:
                raise ConfigError(
                    f'--metric {metric}: a run of {config!r} has recorded '
                    f'{", ".join(record["last"]) or "none"}; give one of them.'
                )
        scores = [record['last'][metric] for record in records]
        minutes = [record['seconds'] / 60 for record in records]
        rows.append(
            [
                Path(config).stem,
                *map(str, values.values()),
                f'{mean(scores):.4g}' if scores else 'no score',
                f'{stdev(scores):.2g}' if len(scores) > 1 else '',
                ', '.join(f'{score:.4g}' for score in scores),
                f'{mean(minutes):.1f}' if minutes else '',
            ]
        )
    header = ['config', *runs[0].values, metric or 'metric', '±', 'of each seed', 'minutes']
    return markdown_table([header, *rows]) + '\n'
