"""Turn a command line into a config that can run. `tools/train.py` and `tools/test.py` share this."""

import argparse
import math
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mmengine.runner
import torch
from mmengine.config import Config, ConfigDict, DictAction
from mmengine.config.utils import MODULE2PACKAGE
from mmengine.device import get_device
from mmengine.model import revert_sync_batchnorm
from mmengine.registry import RUNNERS
from torch import nn

from vit_plugin.errors import ConfigError
from vit_plugin.multimodal import leave_out_multimodal
from vit_plugin.registry import SCOPE
from vit_plugin.shipped import recipe, shipped
from vit_plugin.weights.sources import reading_safely

from .checkpoints.hook import MARKER
from .checkpoints.reading import SavedConfigHook
from .checks import LOADERS, check_config, check_options
from .explain import first_line, sentence
from .optimize import use_passes
from .processes import is_first_to_say, meet
from .runner import Runner


def add_common_arguments(parser: argparse.ArgumentParser, config_required: bool = True) -> None:
    """Add the flags that OpenMMLab's `train.py` and `test.py` share."""
    parser.add_argument('config', help='config file', nargs=None if config_required else '?')
    parser.add_argument('--work-dir', help='folder for logs, checkpoints and metrics')
    parser.add_argument('--amp', action='store_true', help='automatic mixed precision; bfloat16 on a CPU')
    parser.add_argument('--no-pin-memory', action='store_true', help='do not pin the memory of the data loaders')
    add_cfg_options(parser)
    parser.add_argument('--launcher', choices=['none', 'pytorch', 'slurm', 'mpi'], default='none')
    # Older launchers pass this to the script. torchrun sets an environment variable instead.
    parser.add_argument('--local_rank', '--local-rank', type=int, default=0, help=argparse.SUPPRESS)


def add_cfg_options(parser: argparse.ArgumentParser) -> None:
    """Add the flag ``--cfg-options``."""
    parser.add_argument('--cfg-options', nargs='+', action=KeyValue, metavar='KEY=VALUE',
                        help='change settings of the config, e.g. randomness.seed=1 model.backbone.arch=S/16')


class KeyValue(DictAction):
    """Reads ``KEY=VALUE`` as MMEngine does. Anything else is an error of the command line."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Sequence[str],
                 option_string: str | None = None) -> None:
        for value in values:
            if not value.partition('=')[0] or '=' not in value:
                parser.error(f'{option_string}: {value!r} is not of the form KEY=VALUE')
        try:
            super().__call__(parser, namespace, values, option_string)
        except (AssertionError, ValueError, IndexError) as error:
            parser.error(f'{option_string}: {" ".join(values)!r} cannot be read ({first_line(error)})')


def read_config(path: str, options: dict | None = None) -> Config:
    """Read the config file, or the recipe ``vit_plugin::...``, and apply ``--cfg-options``.

    Raises:
        ConfigError: if the file does not exist or cannot be read, or if an option has an impossible name.
    """
    path = recipe(str(path))
    if not Path(path).is_file():
        raise ConfigError(f'There is no config file {path!r}; the recipes are in {shipped("configs")}.')
    try:
        with _known_bases():
            cfg = Config.fromfile(path)
    except Exception as error:  # a config is a program and may raise anything
        raise ConfigError(f'The config file {path!r} cannot be read ({type(error).__name__}: '
                          f'{first_line(error)}); correct it or its bases.') from error
    _leave_scope(cfg)
    check_options(cfg, options or {})
    try:
        cfg.merge_from_dict(options or {})
    except (TypeError, KeyError, ValueError, AssertionError, AttributeError) as error:
        raise ConfigError(f'--cfg-options do not fit the config {path!r} ({first_line(error)}).') from error
    if not isinstance(cfg.get('model'), Mapping):
        raise ConfigError(f'The config file {path!r} has no model=dict(...): it is a part of recipes, not a whole '
                          'one.')
    return cfg


def config_from_text(text: str) -> Config:
    """The config that a text of Python describes. Its bases are found as in a file."""
    with _known_bases():
        cfg = Config.fromstring(text, '.py')
    _leave_scope(cfg)
    return cfg


@contextmanager
def _known_bases() -> Iterator[None]:
    """Let MMEngine find bases of this package, and of the fork of mmseg, which has another name than in its table."""
    hosts = dict(MODULE2PACKAGE)
    MODULE2PACKAGE.update(mmseg='mmseg', vit_plugin='vit_plugin')
    try:
        yield
    finally:
        MODULE2PACKAGE.clear()
        MODULE2PACKAGE.update(hosts)


def _leave_scope(value: Any) -> None:
    """Take back, in place, that MMEngine looks up all that comes with ``vit_plugin::`` in this package alone.

    Recipes name the classes of this package by its prefix, and those of their host without one.
    """
    if isinstance(value, (Config, ConfigDict)):
        if value.get('_scope_') == SCOPE:
            value.pop('_scope_')
        for item in value.values():
            _leave_scope(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _leave_scope(item)


def load_config(args: argparse.Namespace) -> Config:
    """Read the config file, apply ``--cfg-options``, then the common flags. See :func:`read_config`."""
    os.environ.setdefault('LOCAL_RANK', str(args.local_rank))
    cfg = read_config(args.config, args.cfg_options)
    cfg.launcher = args.launcher
    cfg.work_dir = args.work_dir or cfg.get('work_dir') or str(Path('work_dirs', Path(args.config).stem))
    apply_loader_defaults(cfg, args.no_pin_memory)
    return cfg


def apply_loader_defaults(cfg: Config, no_pin_memory: bool = False) -> None:
    """Set the defaults of data loaders as the frameworks' own `train.py` do."""
    for name in LOADERS:
        if cfg.get(name):
            defaults = dict(pin_memory=get_device() != 'cpu', persistent_workers=cfg[name].get('num_workers', 0) > 0)
            if cfg.get('default_scope') == 'mmpretrain':  # other frameworks stack images of several sizes themselves
                defaults['collate_fn'] = dict(type='default_collate')
            cfg[name] = ConfigDict(defaults, **cfg[name])
            if no_pin_memory:
                cfg[name].pin_memory = False


def build_runner(cfg: Config, loaders: Sequence[str] = LOADERS) -> mmengine.runner.Runner:
    """Check the config and build the runner.

    Args:
        cfg: the config.
        loaders: the data loaders that will be used.

    Raises:
        ConfigError: see :func:`~vit_plugin.engine.checks.check_config`.
    """
    if cfg.launcher != 'none':
        meet(cfg.launcher, cfg.get('env_cfg') or {})  # first, so that what is wrong is said once
    check_config(cfg, loaders)
    use_passes(cfg)
    cfg.setdefault('runner_type', 'vit_plugin.Runner')
    _check_schedule_length(cfg)
    runner = RUNNERS.build(cfg)
    if not isinstance(runner, Runner):
        runner.register_hook(SavedConfigHook())
    if get_device() == 'cpu' and isinstance(runner.model, nn.Module):  # torch's SyncBatchNorm does not run there
        runner.model = revert_sync_batchnorm(runner.model)
    return runner


def _check_schedule_length(cfg: Config) -> None:
    """Raise a ``ConfigError`` if the schedules are made for another length and the runner does not scale them."""
    made_for, kind = cfg.get('schedule_length'), cfg.runner_type
    unit = 'max_epochs' if (cfg.get('train_cfg') or {}).get('max_epochs') else 'max_iters'
    length = (cfg.get('train_cfg') or {}).get(unit)
    kind = RUNNERS.get(kind) if isinstance(kind, str) else kind
    differ = None not in (made_for, length, cfg.get('param_scheduler')) and made_for != length
    if differ and not issubclass(kind, Runner):
        raise ConfigError(
            f'train_cfg.{unit}={length}, and the param_scheduler is made for schedule_length={made_for}, which '
            f'vit_plugin.Runner scales and {kind.__name__} does not; leave runner_type out, give {unit}={made_for}, or '
            f'write a param_scheduler for {length} and schedule_length={length}.')


def of_host(table: Mapping[str, Any], cfg: Config) -> Any:
    """The entry for the framework that the config's ``default_scope`` names.

    Raises:
        ConfigError: if there is no such entry.
    """
    scope = cfg.get('default_scope')
    if scope not in table:
        raise ConfigError(f'default_scope={scope!r} must name the host, one of {", ".join(table)}, for this.')
    return table[scope]


def check_device(device: str) -> None:
    """Raise a ``ConfigError`` if this machine does not have the device."""
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(f'--device {device!r} is not in this machine ({first_line(error)}); give --device '
                          f'{get_device()}.') from error


def at_least(least: float, kind: type = int, most: float = math.inf) -> Callable[[str], float]:
    """The type of a flag for a number with bounds."""
    def number(text: str) -> float:
        value = kind(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f'{text} is not ' + (
                f'between {least} and {most}' if most < math.inf else f'{least} or more'))
        return value

    number.__name__ = kind.__name__
    return number


@contextmanager
def one_sentence_errors(traceback: bool = False) -> Iterator[None]:
    """End the program with one sentence if the input is wrong. Checkpoints are read safely within this context.

    Args:
        traceback: whether to keep errors with their tracebacks.
    """
    try:
        with reading_safely():
            yield
    except Exception as error:
        said = None if traceback else sentence(error)
        if said is None:
            raise
        raise SystemExit(f'Error: {said}' if is_first_to_say(said) else 1) from error


def run_tool(parser: argparse.ArgumentParser, main: Callable[[argparse.Namespace], None]) -> None:
    """Parse the command line and run the tool, see :func:`one_sentence_errors`."""
    parser.add_argument('--traceback', action='store_true', help='show where an error comes from')
    try:
        args = parser.parse_args()
    except RecursionError:  # MMEngine's reader of KEY=VALUE looks for the end of a dict without end
        parser.error('--cfg-options takes plain values and lists of them; write dicts in a config file.')
    leave_out_multimodal()
    with one_sentence_errors(args.traceback):
        main(args)


@contextmanager
def told_when_interrupted(runner: mmengine.runner.Runner) -> Iterator[None]:
    """End the program on Ctrl-C with a sentence that names the checkpoint to resume from.

    The signal is recorded, because MMEngine turns some ``KeyboardInterrupt`` into other errors.
    """
    interrupts: list[int] = []

    def interrupt(number: int, frame: object) -> None:
        interrupts.append(number)
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    except BaseException:
        if not interrupts:
            raise
        last = Path(runner.work_dir, MARKER)
        kept = f'the last checkpoint is {last.read_text()}; go on with --resume' if last.is_file() else (
            'there was no checkpoint yet')
        said = f'Interrupted after {runner.iter} iterations: {kept}.'
        raise SystemExit(said if is_first_to_say(said) else 1) from None
    finally:
        signal.signal(signal.SIGINT, previous)
