"""The runs that a sweep consists of."""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

from vit_plugin.config import check_config, read_config
from vit_plugin.errors import ConfigError
from vit_plugin.files.complete import write_text

RECORD, FINISHED, LOG = 'sweep.json', 'finished', 'sweep.log'
SEED = 'randomness.seed'


@dataclass(frozen=True, eq=False)
class Run:
    """One training of a sweep."""
    config: str  # path of its config
    values: dict[str, Any]  # the settings of the grid
    seed: int
    folder: Path  # its work directory
    command: list[str]  # that trains it, from its last checkpoint if there is one

    @property
    def is_finished(self) -> bool:
        """Whether its training has ended well."""
        return (self.folder / FINISHED).is_file()


@dataclass(frozen=True)
class Sweep:
    """All combinations of some configs and a grid's values, with several seeds each."""
    configs: Sequence[str]  # their paths
    grid: Mapping[str, Sequence[Any]]  # the values of each setting
    seeds: int  # how many, from 0 on
    folder: Path  # of the runs and the results
    options: Mapping[str, Any]  # that all runs share
    script: Path  # tools/train.py

    @cached_property
    def runs(self) -> list[Run]:
        """A training for each combination and seed, in the order of the grid."""
        runs = []
        for i, (config, *values, seed) in enumerate(product(self.configs, *self.grid.values(), range(self.seeds))):
            chosen = dict(zip(self.grid, values, strict=True))
            words = [f'{i:03d}', *([Path(config).stem[:40]] if len(self.configs) > 1 else []),
                     *(f'{key.rpartition(".")[2]}={as_text(value)}' for key, value in chosen.items())]
            folder = self.folder / f'{re.sub("[^A-Za-z0-9=.+-]", "_", "_".join(words))[:100]}_seed{seed}'
            options = [f'{key}={as_text(value)}' for key, value in {**self.options, **chosen, SEED: seed}.items()]
            runs.append(Run(config, chosen, seed, folder, [
                sys.executable, str(self.script), config, '--work-dir', str(folder), '--resume', '--cfg-options',
                *options]))
        return runs

    @property
    def combinations(self) -> list[list[Run]]:
        """The runs of each config with each combination of the grid's values, one for each seed."""
        return [self.runs[i:i + self.seeds] for i in range(0, len(self.runs), self.seeds)]

    def check(self) -> None:
        """Check each combination as its training will, before anything runs.

        Raises:
            ConfigError: if two configs have one name, if the seed is a setting, if a config cannot run, or if nothing
                would record its metrics.
        """
        if SEED in {**self.grid, **self.options}:
            raise ConfigError(f'{SEED}: each run of a sweep has its own seed; leave it out and give --seeds.')
        names = [Path(config).stem for config in self.configs]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ConfigError(f'Two of the configs are named {twice[0]!r}, by which the results call them; give each '
                              'config once, under its own name.')
        for run, *_ in self.combinations:
            cfg = read_config(run.config, {**self.options, **run.values})
            cfg.work_dir = str(self.folder)
            check_config(cfg)
            reports = any('ReportHook' in str(hook['type']) for hook in cfg.get('custom_hooks') or ())
            if not (reports and cfg.get('val_dataloader')):
                raise ConfigError(f"The config {run.config!r} records no metrics to compare; give it a val_dataloader, "
                                  "val_evaluator and val_cfg, and custom_hooks=[dict(type='vit_plugin.ReportHook')].")

    def claim(self) -> None:
        """Write what the sweep is into its folder. Raises a ``ConfigError`` if the folder is that of another sweep."""
        mine = json.dumps(dict(configs=self.configs, grid=self.grid, seeds=self.seeds, options=self.options), indent=1)
        path = self.folder / RECORD
        if path.is_file() and path.read_text().strip() != mine:
            raise ConfigError(f'{str(self.folder)!r} is the folder of another sweep, which {RECORD} there describes; '
                              'give another --work-dir.')
        write_text(path, mine + '\n')


def as_text(value: Any) -> str:
    """A value as ``--cfg-options`` reads it."""
    if isinstance(value, (list, tuple)):
        inner = ','.join(map(as_text, value))
        return f'({inner})' if isinstance(value, tuple) else f'[{inner}]'
    return str(value)
