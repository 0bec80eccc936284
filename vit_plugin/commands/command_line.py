"""Build a runner from a command line, and run a training that can be interrupted."""

import argparse
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from vit_plugin.commands import frameworks  # noqa: F401  first, since it says what is missing
from vit_plugin.commands.one_sentence import TrainingError

# isort: split
import mmengine.runner
from mmengine.config import Config
from mmengine.device import get_device
from mmengine.dist import is_main_process
from mmengine.model import revert_sync_batchnorm
from mmengine.registry import RUNNERS
from torch import nn

from anyfolder.complete import check_path
from anyfolder.terminal import printable
from vit_plugin.config import LOADER_SECTIONS, apply_loader_defaults, read_config
from vit_plugin.config.runnable import check_config
from vit_plugin.config.scope import import_data_sets
from vit_plugin.engine.checkpoints.chosen import LAST
from vit_plugin.engine.checkpoints.found_checkpoint import MARKER
from vit_plugin.engine.distributed import init_distributed
from vit_plugin.engine.faults.explain import explain_error
from vit_plugin.engine.optimize_hook import use_passes
from vit_plugin.engine.runner import Runner
from vit_plugin.engine.work_dir import lock_work_dir
from vit_plugin.errors import ConfigError
from vit_plugin.files.standard_streams import exit_interrupted
from vit_plugin.inference.saved_model import SavedModel, find_checkpoint


def load_config(args: argparse.Namespace, saved: SavedModel | None = None) -> Config:
    """The config of ``args.config`` or of a checkpoint, with the flags of ``add_run_arguments``.

    ``--amp`` is left to the caller. A config from a checkpoint already has ``--cfg-options``
    applied. Without a config file, logs go to the folder of the checkpoint. For one at an address,
    they go to a folder of its name in work_dirs.
    """
    os.environ.setdefault('LOCAL_RANK', str(args.local_rank))
    cfg = saved.cfg if saved else read_config(args.config, args.cfg_options)
    cfg.launcher = args.launcher
    if saved and not (args.config or cfg.get('work_dir')):  # --cfg-options may set it
        source = saved.checkpoint.source
        name = Path(source.partition('?')[0]).stem
        cfg.work_dir = str(Path('work_dirs', name) if '://' in source else Path(source).parent)
    cfg.work_dir = (
        args.work_dir or cfg.get('work_dir') or str(Path('work_dirs', Path(args.config).stem))
    )
    check_path(cfg.work_dir)
    apply_loader_defaults(cfg, args.no_pin_memory)
    cfg.verbose = args.verbose or cfg.get('verbose', False)
    return cfg


def apply_training_flags(cfg: Config, args: argparse.Namespace) -> None:
    """Apply ``--amp``, ``--resume`` and ``--resume-changed`` of a training to its config."""
    if args.amp and isinstance(cfg.get('optim_wrapper'), Mapping):  # else check_config rejects it
        cfg.optim_wrapper.type = 'vit_plugin.AmpOptimWrapper'
    if args.resume_changed:
        cfg.resume_changed, args.resume = True, args.resume or 'auto'
    if args.resume:
        cfg.resume = True
        if args.resume != 'auto' and 'load_from' in (getattr(args, 'cfg_options', None) or {}):
            raise ConfigError(
                f'--resume {args.resume} does not go with --cfg-options load_from=..., since the '
                'checkpoint has all weights; leave one of them out.'
            )
        if args.resume == 'auto':
            # MMEngine would resume from `load_from`, so it becomes `begin_from`.
            cfg.begin_from, args.resume = cfg.get('load_from') or cfg.get('begin_from'), None
        cfg.load_from = args.resume and find_checkpoint(args.resume, default_which=LAST)


def build_runner(cfg: Config, loaders: Sequence[str] = LOADER_SECTIONS) -> mmengine.runner.Runner:
    """Check the config with the data loaders that will be used, and build the runner.

    Raises:
        ConfigError: see :func:`~vit_plugin.config.runnable.check_config`.
    """
    _prepare_config(cfg, loaders)
    return _build(cfg)


@contextmanager
def training_runner(
    cfg: Config, loaders: Sequence[str] = LOADER_SECTIONS
) -> Iterator[mmengine.runner.Runner]:
    """The runner of :func:`build_runner`, to train in this context, with :func:`report_interrupt`.

    Nothing is written to the work directory before this run has locked it.

    Raises:
        ConfigError: as in :func:`build_runner`, and if another run trains in the work directory.
    """
    _prepare_config(cfg, loaders)
    with lock_work_dir(cfg.work_dir):
        runner = _build(cfg)
        with report_interrupt(runner):
            yield runner


def _prepare_config(cfg: Config, loaders: Sequence[str]) -> None:
    """Join the other processes, check the config, and add the passes and the runner's type."""
    if cfg.launcher != 'none':
        init_distributed(cfg.launcher, cfg.get('env_cfg'))
    if not cfg.get('verbose', True):
        # Import them before the registry does, which would show their messages.
        import_data_sets(cfg.get('default_scope'))
    check_config(cfg, loaders)
    use_passes(cfg)
    cfg.setdefault('runner_type', 'vit_plugin.Runner')
    _check_schedule_length(cfg)


def _build(cfg: Config) -> mmengine.runner.Runner:
    runner = RUNNERS.build(cfg)
    # torch's SyncBatchNorm needs a GPU.
    if get_device() == 'cpu' and isinstance(runner.model, nn.Module):
        runner.model = revert_sync_batchnorm(runner.model)
    return runner


def _check_schedule_length(cfg: Config) -> None:
    """Raise a ``ConfigError`` if the schedules are for another length and nothing scales them."""
    schedule_length, runner_type = cfg.get('schedule_length'), cfg.runner_type
    unit = 'max_epochs' if (cfg.get('train_cfg') or {}).get('max_epochs') else 'max_iters'
    length = (cfg.get('train_cfg') or {}).get(unit)
    runner_class = RUNNERS.get(runner_type) if isinstance(runner_type, str) else runner_type
    if None in (schedule_length, length, cfg.get('param_scheduler')) or schedule_length == length:
        return
    if not issubclass(runner_class, Runner):
        raise ConfigError(
            f'train_cfg.{unit}={length}, and the param_scheduler is made for '
            f'schedule_length={schedule_length}, which vit_plugin.Runner scales and '
            f'{runner_class.__name__} does not; leave runner_type out, give '
            f'{unit}={schedule_length}, or write a param_scheduler for {length} and '
            f'schedule_length={length}.'
        )


@contextmanager
def report_interrupt(runner: mmengine.runner.Runner) -> Iterator[None]:
    """End the program on Ctrl-C with a sentence that names the checkpoint to resume from.

    The signal is recorded, since MMEngine turns some ``KeyboardInterrupt`` exceptions into other
    errors.

    Raises:
        TrainingError: in place of an unknown error after the first step.
    """
    is_interrupted = False

    def interrupt(number: int, frame: object) -> None:
        nonlocal is_interrupted
        is_interrupted = True
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    except BaseException as error:
        if isinstance(error, OSError) and error.errno and not error.filename:
            # The error does not name a file when a log or the settings are written.
            error.filename = runner.work_dir
        if not is_interrupted:
            if runner.iter and isinstance(error, Exception) and not explain_error(error):
                raise TrainingError(
                    f'The training ended after {runner.iter} iterations.'
                ) from error
            raise
        marker, outcome = Path(runner.work_dir, MARKER), 'there was no checkpoint yet'
        if marker.is_file():
            checkpoint = printable(os.fsdecode(marker.read_bytes()))
            outcome = f'the last checkpoint is {checkpoint}; continue with --resume'
        message = f'Interrupted after {runner.iter} iterations: {outcome}.'
        raise exit_interrupted(message if is_main_process() else '') from None
    finally:
        signal.signal(signal.SIGINT, previous)
