"""What a sweep consists of."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

from mmengine.config import Config
from mmengine.registry import (
    DATASETS,
    HOOKS,
    METRICS,
    MODELS,
    OPTIM_WRAPPERS,
    OPTIMIZERS,
    PARAM_SCHEDULERS,
    TRANSFORMS,
    init_default_scope,
)

from vit_plugin.engine.checks import check_config
from vit_plugin.engine.config import read_config
from vit_plugin.engine.explain import nearest, parameters
from vit_plugin.errors import ConfigError
from vit_plugin.writing import write_text

RECORD = 'sweep.json'
SEED = 'randomness.seed'
TYPED = (MODELS, DATASETS, HOOKS, METRICS, OPTIM_WRAPPERS, OPTIMIZERS, PARAM_SCHEDULERS, TRANSFORMS)


@dataclass(frozen=True)
class Member:
    """One training of a sweep.

    Attributes:
        config: path of its config.
        values: the settings of the grid.
        seed: the seed.
        folder: its work directory.
    """
    config: str
    values: dict[str, Any]
    seed: int
    folder: Path

    @property
    def options(self) -> list[str]:
        """The settings as ``KEY=VALUE``, for ``--cfg-options``."""
        return [f'{key}={as_text(value)}' for key, value in {**self.values, SEED: self.seed}.items()]


@dataclass(frozen=True)
class Sweep:
    """All combinations of some configs and a grid's values, with several seeds each.

    Attributes:
        configs: paths of the configs.
        grid: the values of each setting.
        seeds: number of seeds, from 0 on.
        folder: folder for the members and the results.
        options: settings that all members have besides.
    """
    configs: Sequence[str]
    grid: Mapping[str, Sequence[Any]]
    seeds: int
    folder: Path
    options: Mapping[str, Any]

    @cached_property
    def members(self) -> list[Member]:
        """A training for each combination and seed, in the order of the grid."""
        members: list[Member] = []
        for config, settings in self.combinations:
            words = [Path(config).stem[:40]] if len(self.configs) > 1 else []
            words += [f'{key.rpartition(".")[2]}={as_text(value)}' for key, value in settings.items()]
            for seed in range(self.seeds):
                name = '_'.join([f'{len(members):03d}', *words])
                name = f'{re.sub("[^A-Za-z0-9=.+-]", "_", name)[:100]}_seed{seed}'
                members.append(Member(config, settings, seed, self.folder / name))
        return members

    @property
    def combinations(self) -> list[tuple[str, dict[str, Any]]]:
        """Each config with each combination of the grid's values."""
        return [(config, dict(zip(self.grid, values, strict=True)))
                for config, *values in product(self.configs, *self.grid.values())]

    def check(self) -> None:
        """Check each member's config before anything runs.

        Raises:
            ConfigError: if two configs have one name, if a key is not in a config and no part of it takes it, if it is
                the seed, if a config cannot run, or if nothing would record its metrics.
        """
        for flag, given in (('--grid', self.grid), ('--cfg-options', self.options)):
            if SEED in given:
                raise ConfigError(f'{flag} {SEED}: each member has a seed of its own; give --seeds.')
        twice = [name for name, number in Counter(Path(config).stem for config in self.configs).items() if number > 1]
        if twice:
            raise ConfigError(f'Two of the configs are named {twice[0]!r}, by which the results call them; give each '
                              'config once, under a name of its own.')
        for config, settings in self.combinations:
            cfg = read_config(config, dict(self.options))
            init_default_scope(cfg.get('default_scope') or 'mmengine')
            for key in self.grid:
                check_key(cfg, key)
            cfg = read_config(config, {**self.options, **settings})
            cfg.work_dir = str(self.folder)
            check_config(cfg)
            if not any('ReportHook' in str(hook['type']) for hook in cfg.get('custom_hooks') or ()):
                raise ConfigError(f"The config {config!r} records no metrics to compare; add "
                                  "custom_hooks=[dict(type='vit_plugin.ReportHook')] to it.")
            if not cfg.get('val_dataloader'):
                raise ConfigError(f'The config {config!r} has no validation, so no metrics to compare; give it a '
                                  'val_dataloader, val_evaluator and val_cfg.')

    def claim(self) -> None:
        """Write what the sweep is into its folder, or find the same there.

        Raises:
            ConfigError: if the folder is that of another sweep.
        """
        mine = json.loads(json.dumps(dict(
            configs=self.configs, grid=self.grid, seeds=self.seeds, options=self.options)))
        path = self.folder / RECORD
        if path.is_file():
            try:
                there = json.loads(path.read_text())
            except ValueError:
                there = {}
            differ = [name for name, value in mine.items() if there.get(name) != value]
            if differ:
                raise ConfigError(f'{str(self.folder)!r} is the folder of another sweep ({differ[0]} is '
                                  f'{there.get(differ[0])!r} there); give another --work-dir.')
        else:
            write_text(path, json.dumps(mine, indent=1) + '\n')


def as_text(value: Any) -> str:
    """A value as ``--cfg-options`` reads it."""
    if isinstance(value, (list, tuple)):
        inner = ','.join(map(as_text, value))
        return f'({inner})' if isinstance(value, tuple) else f'[{inner}]'
    return str(value)


def check_key(cfg: Config, key: str) -> None:
    """Check that a config has a setting, or a part whose constructor takes it.

    Raises:
        ConfigError: gives the nearest name.
    """
    at: Any = cfg.to_dict()
    path: list[str] = []
    names = key.split('.')
    for name in names:
        found = at[int(name)] if isinstance(at, (list, tuple)) and name.isdecimal() and int(name) < len(at) else (
            at.get(name, at) if isinstance(at, Mapping) else at)
        if found is at:
            known = {*at, *_arguments(at)} if isinstance(at, Mapping) else set()
            if name not in known or name != names[-1]:
                raise ConfigError(f'--grid {key}: {".".join(path) or "the config"} has no setting {name!r}'
                                  f'{nearest(name, known)}')
        at = found
        path.append(name)


def _arguments(part: Mapping[str, Any]) -> set[str]:
    """The arguments of a part's class."""
    names: set[str] = set()
    for registry in TYPED if isinstance(part.get('type'), str) else ():
        with suppress(ConfigError):  # our registries refuse what is not theirs
            names |= parameters(registry.get(part['type']) or object)
    return names
