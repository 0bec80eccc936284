"""The same training over a grid of settings, with several seeds of each combination."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from vit_plugin.config import check_config, read_config
from vit_plugin.engine.validation_record import RECORD
from vit_plugin.errors import ConfigError
from vit_plugin.files.complete import write_text

SWEEP, FINISHED, LOG = 'sweep.json', 'finished', 'sweep.log'
SEED = 'randomness.seed'


@dataclass
class Combination:
    """A config with a value of each setting.

    Attributes:
        config: its path.
        values: the settings of the grid.
        name: the start of the names of its folders.
        scores: the metric at the end of each finished training, by seed.
        seconds: of these trainings.
    """

    config: str
    values: dict[str, Any]
    name: str
    scores: dict[int, float] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Run:
    """One training: its work directory, and the command that begins or continues it."""

    folder: Path
    command: list[str]


@dataclass(frozen=True)
class Sweep:
    """All combinations of some configs and a grid's values.

    Attributes:
        configs: their paths.
        grid: the values of each setting.
        seeds: how many, from 0 on.
        folder: for the runs and the results.
        options: settings that all runs share.
        script: tools/train.py.
    """

    configs: Sequence[str]
    grid: Mapping[str, Sequence[Any]]
    seeds: int
    folder: Path
    options: Mapping[str, Any]
    script: Path

    def combinations(self) -> list[Combination]:
        """In the order of the grid."""
        found = []
        for number, (config, *values) in enumerate(product(self.configs, *self.grid.values())):
            chosen = dict(zip(self.grid, values, strict=True))
            words = [f'{key.rpartition(".")[2]}={as_text(value)}' for key, value in chosen.items()]
            name = '_'.join([f'{number:03d}', Path(config).stem[:40], *words])
            found.append(Combination(config, chosen, re.sub('[^A-Za-z0-9=.+-]', '_', name)[:100]))
        return found

    def run_of(self, combination: Combination, seed: int) -> Run:
        """The training of a combination with a seed."""
        settings = {**self.options, **combination.values, SEED: seed}
        folder = self.folder / f'{combination.name}_seed{seed}'
        return Run(
            folder,
            [
                sys.executable,
                str(self.script),
                combination.config,
                '--work-dir',
                str(folder),
                '--resume',
                '--cfg-options',
                *(f'{key}={as_text(value)}' for key, value in settings.items()),
            ],
        )

    def runs(self) -> list[Run]:
        """All trainings."""
        return [self.run_of(*pair) for pair in product(self.combinations(), range(self.seeds))]

    def check(self) -> None:
        """Check each combination as its training will, before anything runs.

        Raises:
            ConfigError: if the seed is a setting, if a config cannot run or validates nothing, or
                if the folder is that of another sweep.
        """
        if SEED in {**self.grid, **self.options}:
            raise ConfigError(
                f'{SEED}: each run of a sweep has its own seed; leave it out and give --seeds.'
            )
        for combination in self.combinations():
            cfg = read_config(combination.config, {**self.options, **combination.values})
            cfg.work_dir = str(self.folder)
            check_config(cfg)
            records = any(
                'ReportHook' in str(hook['type']) for hook in cfg.get('custom_hooks') or ()
            )
            if not (records and cfg.get('val_dataloader')):
                raise ConfigError(
                    f'The config {combination.config!r} records no metrics to compare; give it a '
                    'val_dataloader, val_evaluator and val_cfg, and '
                    "custom_hooks=[dict(type='vit_plugin.ReportHook')]."
                )
        mine = json.dumps(
            dict(configs=self.configs, grid=self.grid, seeds=self.seeds, options=self.options),
            indent=1,
        )
        path = self.folder / SWEEP
        if path.is_file() and path.read_text().strip() != mine:
            raise ConfigError(
                f'{str(self.folder)!r} is the folder of another sweep, which {SWEEP} there '
                'describes; give another --work-dir.'
            )
        write_text(path, mine + '\n')

    def train(self, jobs: int) -> dict[Path, str]:
        """Train what is not finished, so many runs at the same time.

        Each has its share of the cores, unless ``OMP_NUM_THREADS`` is set. On Ctrl-C and SIGTERM
        the trainings are asked to save and stop, and waited for.

        Returns:
            The folders of the runs that failed, and why.
        """
        env = {'OMP_NUM_THREADS': str(max((os.cpu_count() or 1) // jobs, 1)), **os.environ}
        running: set[subprocess.Popen] = set()

        def train(run: Run) -> str:
            if (run.folder / FINISHED).is_file():
                return ''
            print(f'{run.folder.name}: begins')
            run.folder.mkdir(parents=True, exist_ok=True)
            with (run.folder / LOG).open('ab') as log:
                process = subprocess.Popen(
                    run.command, stdout=log, stderr=subprocess.STDOUT, env=env
                )
            running.add(process)
            code = process.wait()
            running.discard(process)
            if code == 0:
                (run.folder / FINISHED).touch()
                return ''
            how = f'ended by {signal.Signals(-code).name}' if code < 0 else f'exit status {code}'
            return f'{how}: {last_line(run.folder / LOG)}'

        runs = self.runs()
        before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
        with ThreadPoolExecutor(jobs) as pool:
            try:
                failures = list(pool.map(train, runs))
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
                for process in list(running):
                    process.terminate()
                signal.signal(signal.SIGTERM, before)
        return {run.folder: why for run, why in zip(runs, failures, strict=True) if why}

    def results(self, metric: str | None = None) -> tuple[str, list[Combination]]:
        """The metric's name (by default the first recorded) and the combinations with scores.

        Raises:
            ConfigError: if a finished run has recorded no such metric.
        """
        combinations = self.combinations()
        for combination, seed in product(combinations, range(self.seeds)):
            folder = self.run_of(combination, seed).folder
            if not (folder / FINISHED).is_file():
                continue
            record = json.loads((folder / RECORD).read_text())
            metric = metric or next(iter(record['last']), None)
            if metric not in record['last']:
                raise ConfigError(
                    f'--metric {metric}: {str(folder)!r} has recorded '
                    f'{", ".join(record["last"]) or "none"}; give one of them, or validate within '
                    'the training.'
                )
            combination.scores[seed] = record['last'][metric]
            combination.seconds.append(record['seconds'])
        return metric or 'metric', combinations


def last_line(log: Path) -> str:
    """The last line of a log."""
    lines = log.read_text(errors='replace').strip().splitlines()
    return lines[-1].removeprefix('Error: ') if lines else f'{log.name} is empty'


def as_markdown(metric: str, combinations: Sequence[Combination]) -> str:
    """A table of combinations: mean, sample standard deviation, extremes, seconds of training."""
    settings = list(combinations[0].values)
    lines = [['config', *settings, metric, '±', 'lowest', 'highest', 'seeds', 'seconds']]
    lines.append(['---'] * len(lines[0]))
    for one in combinations:
        scores = list(one.scores.values())
        cells = ['no score', '', '', '', '0', '']
        if scores:
            spread = f'{stdev(scores):.2g}' if len(scores) > 1 else ''
            cells = [
                f'{mean(scores):.4g}',
                spread,
                f'{min(scores):.4g}',
                f'{max(scores):.4g}',
                str(len(scores)),
                f'{mean(one.seconds):.0f}',
            ]
        lines.append([Path(one.config).stem, *map(as_text, one.values.values()), *cells])
    return '\n'.join(f'| {" | ".join(line)} |' for line in lines) + '\n'


def as_text(value: Any) -> str:
    """A value as ``--cfg-options`` reads it."""
    if isinstance(value, (list, tuple)):
        inner = ','.join(map(as_text, value))
        return f'({inner})' if isinstance(value, tuple) else f'[{inner}]'
    return str(value)
