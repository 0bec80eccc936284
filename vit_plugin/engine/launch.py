"""From a command line to a config that can run: what `tools/train.py` and `tools/test.py` share."""

import argparse
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from mmengine.config import Config, ConfigDict, DictAction
from mmengine.config.utils import MODULE2PACKAGE
from mmengine.device import get_device
from mmengine.model import revert_sync_batchnorm
from mmengine.registry import RUNNERS
from mmengine.runner import Runner

from vit_plugin.errors import ConfigError, MissingExtraError

from .checks import LOADERS, check_config

# Where `mmseg::` in a config's bases is looked for: the maintained fork's distribution has another name than the
# original's, and the module is found by its own.
MODULE2PACKAGE['mmseg'] = 'mmseg'


def add_common_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags that OpenMMLab's `train.py` and `test.py` both have."""
    parser.add_argument('config', help='config file')
    parser.add_argument('--work-dir', help='folder for logs, checkpoints and metrics')
    parser.add_argument('--amp', action='store_true', help='automatic mixed precision; bfloat16 on a CPU')
    parser.add_argument('--no-pin-memory', action='store_true', help='do not pin the memory of the data loaders')
    parser.add_argument('--cfg-options', nargs='+', action=DictAction, metavar='KEY=VALUE',
                        help='change settings of the config, e.g. randomness.seed=1 model.backbone.arch=S/16')
    parser.add_argument('--launcher', choices=['none', 'pytorch', 'slurm', 'mpi'], default='none')
    # What older launchers pass to the script; torchrun sets the environment variable instead.
    parser.add_argument('--local_rank', '--local-rank', type=int, default=0, help=argparse.SUPPRESS)


def read_config(path: str, options: dict | None = None) -> Config:
    """The config file with ``--cfg-options`` applied.

    Raises:
        ConfigError: if there is no such file.
    """
    if not Path(path).is_file():
        raise ConfigError(f'There is no config file {path!r}; the recipes are in the folder configs/.')
    cfg = Config.fromfile(path)
    cfg.merge_from_dict(options or {})
    return cfg


def load_config(args: argparse.Namespace) -> Config:
    """The config file with ``--cfg-options`` and the common flags applied, in this order; see :func:`read_config`."""
    os.environ.setdefault('LOCAL_RANK', str(args.local_rank))
    cfg = read_config(args.config, args.cfg_options)
    cfg.launcher = args.launcher
    cfg.work_dir = args.work_dir or cfg.get('work_dir') or str(Path('work_dirs', Path(args.config).stem))
    apply_loader_defaults(cfg, args.no_pin_memory)
    return cfg


def apply_loader_defaults(cfg: Config, no_pin_memory: bool = False) -> None:
    """What the hosts' own `train.py` sets in data loaders that leave it open."""
    for name in LOADERS:
        if cfg.get(name):
            defaults = dict(pin_memory=get_device() != 'cpu', persistent_workers=cfg[name].get('num_workers', 0) > 0)
            if cfg.get('default_scope') == 'mmpretrain':  # the other hosts stack images of several sizes themselves
                defaults['collate_fn'] = dict(type='default_collate')
            cfg[name] = ConfigDict(defaults, **cfg[name])
            if no_pin_memory:
                cfg[name].pin_memory = False


def build_runner(cfg: Config, loaders: Sequence[str] = LOADERS) -> Runner:
    """Check what can be checked early, and build the runner.

    Args:
        cfg: the config.
        loaders: the data loaders that will be used.

    Raises:
        ConfigError: see :func:`~vit_plugin.engine.checks.check_config`.
    """
    check_config(cfg, loaders)
    _prepare_cpu_processes(cfg)
    runner = RUNNERS.build(cfg) if 'runner_type' in cfg else Runner.from_cfg(cfg)
    if get_device() == 'cpu':  # where torch's SyncBatchNorm does not run
        runner.model = revert_sync_batchnorm(runner.model)
    return runner


def _prepare_cpu_processes(cfg: Config) -> None:
    """Several processes without an accelerator: MMEngine's own set-up takes a GPU for granted."""
    if cfg.launcher == 'pytorch' and get_device() == 'cpu':
        torch.distributed.init_process_group('gloo')
        cfg.setdefault('model_wrapper_cfg', dict(type='MMDistributedDataParallel', broadcast_buffers=False))
        cfg.model_wrapper_cfg.device_ids = None


@contextmanager
def one_sentence_errors() -> Iterator[None]:
    """End the program with the sentence of a :class:`ConfigError`, without its traceback."""
    try:
        yield
    except (ConfigError, MissingExtraError) as error:
        raise SystemExit(f'Error: {error}') from error


@contextmanager
def told_when_interrupted(runner: Runner) -> Iterator[None]:
    """End the program on Ctrl-C with a sentence about the checkpoint to go on from.

    The signal is noted, because MMEngine turns a ``KeyboardInterrupt`` into other errors in places.
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
        last = Path(runner.work_dir, 'last_checkpoint')
        kept = f'the last checkpoint is {last.read_text()}; go on with --resume' if last.is_file() else (
            'there was no checkpoint yet')
        raise SystemExit(f'Interrupted after {runner.iter} iterations: {kept}.') from None
    finally:
        signal.signal(signal.SIGINT, previous)
