"""From a command line to a config that can run: what `tools/train.py` and `tools/test.py` share."""

import argparse
import inspect
import os
import signal
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from mmengine.config import Config, ConfigDict, DictAction
from mmengine.device import get_device
from mmengine.registry import DATASETS, RUNNERS
from mmengine.runner import Runner

from vit_plugin.arch import parse_arch
from vit_plugin.errors import ConfigError, MissingExtraError

LOADERS = ('train_dataloader', 'val_dataloader', 'test_dataloader')


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


def load_config(args: argparse.Namespace) -> Config:
    """The config file with ``--cfg-options`` and the common flags applied, in this order.

    Raises:
        ConfigError: if there is no such file.
    """
    os.environ.setdefault('LOCAL_RANK', str(args.local_rank))
    if not Path(args.config).is_file():
        raise ConfigError(f'There is no config file {args.config!r}; the recipes are in the folder configs/.')
    cfg = Config.fromfile(args.config)
    cfg.merge_from_dict(args.cfg_options or {})
    cfg.launcher = args.launcher
    cfg.work_dir = args.work_dir or cfg.get('work_dir') or str(Path('work_dirs', Path(args.config).stem))
    for name in LOADERS:
        if cfg.get(name):
            defaults = dict(pin_memory=get_device() != 'cpu', persistent_workers=cfg[name].get('num_workers', 0) > 0,
                            collate_fn=dict(type='default_collate'))
            cfg[name] = ConfigDict(defaults, **cfg[name])
            if args.no_pin_memory:
                cfg[name].pin_memory = False
    return cfg


def build_runner(cfg: Config, loaders: Sequence[str] = LOADERS) -> Runner:
    """Check what can be checked early, and build the runner.

    Args:
        cfg: the config.
        loaders: the data loaders that will be used.

    Raises:
        ConfigError: see :func:`check_config`.
    """
    check_config(cfg, loaders)
    _prepare_cpu_processes(cfg)
    return RUNNERS.build(cfg) if 'runner_type' in cfg else Runner.from_cfg(cfg)


def _prepare_cpu_processes(cfg: Config) -> None:
    """Several processes without an accelerator: MMEngine's own set-up takes a GPU for granted."""
    if cfg.launcher == 'pytorch' and get_device() == 'cpu':
        torch.distributed.init_process_group('gloo')
        cfg.setdefault('model_wrapper_cfg', dict(type='MMDistributedDataParallel', broadcast_buffers=False))
        cfg.model_wrapper_cfg.device_ids = None


def check_config(cfg: Config, loaders: Sequence[str] = LOADERS) -> None:
    """Find out in a second what would else fail after minutes.

    Raises:
        ConfigError: if the work directory cannot be written, a data folder or the checkpoint is missing, or
            the head does not fit the backbone.
    """
    _check_work_dir(cfg.work_dir)
    _check_checkpoint(cfg.get('load_from'))
    for name in loaders:
        if cfg.get(name):
            _check_data(f'{name}.dataset', cfg[name]['dataset'], cfg.get('default_scope'))
    _check_head(cfg.model)


def _check_work_dir(work_dir: str) -> None:
    try:
        os.makedirs(work_dir, exist_ok=True)
        with tempfile.TemporaryFile(dir=work_dir):
            pass
    except OSError as error:
        raise ConfigError(f'work_dir {work_dir!r} cannot be written ({error.strerror}); '
                          'give another with --work-dir.') from error


def _check_checkpoint(path: str | None) -> None:
    if path and '://' not in path and not os.path.isfile(path):
        raise ConfigError(f'There is no checkpoint file {path!r}.')


def _check_data(field: str, dataset: ConfigDict, scope: str | None) -> None:
    if 'dataset' in dataset:  # a wrapper such as RepeatDataset
        return _check_data(f'{field}.dataset', dataset['dataset'], scope)
    root, kind, prefix = dataset.get('data_root'), dataset['type'], dataset.get('data_prefix')
    folder = os.path.join(root or '', prefix if isinstance(prefix, str) else '')
    if not folder or '://' in folder or os.path.isdir(folder):
        return
    if isinstance(kind, str):
        with DATASETS.switch_scope_and_registry(scope) as registry:
            kind = registry.get(kind)
    downloads = kind and 'download' in inspect.signature(kind).parameters and dataset.get('download', True)
    if not downloads:
        raise ConfigError(f'{field}: there is no folder {folder!r} in {os.getcwd()}; put or link the data there, '
                          f'or give --cfg-options {field}.data_root=FOLDER.')


def _check_head(model: ConfigDict) -> None:
    backbone, head = model.get('backbone', {}), model.get('head', {})
    ours = backbone.get('type') == 'vit_plugin.VisionTransformer' and 'in_channels' in head
    if ours and (model.get('neck') or {}).get('type') in (None, 'vit_plugin.TokenPooling'):
        width = parse_arch(backbone.get('arch', 'B/16')).embed_dims
        if head['in_channels'] != width:
            raise ConfigError(f'model.head.in_channels={head["in_channels"]} does not fit the backbone, whose tokens '
                              f'are {width} wide: set it to {width}.')


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
