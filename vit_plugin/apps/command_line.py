"""From a command line to a run: the flags that tools share, the runner, and errors in one sentence."""

import argparse
import math
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import mmengine.runner
import torch
from mmengine.config import Config, DictAction
from mmengine.device import get_device
from mmengine.dist import is_main_process
from mmengine.model import revert_sync_batchnorm
from mmengine.registry import RUNNERS
from torch import nn

from vit_plugin.engine.checkpoints.hook import MARKER
from vit_plugin.engine.checkpoints.reading import SavedConfigHook
from vit_plugin.engine.checks import LOADERS, check_config
from vit_plugin.engine.config import apply_loader_defaults, read_config
from vit_plugin.engine.distributed import init_distributed, report_of_rank
from vit_plugin.engine.explain import explained, first_line, sentence
from vit_plugin.engine.optimize import use_passes
from vit_plugin.engine.runner import Runner
from vit_plugin.errors import ConfigError, leave_out_multimodal
from vit_plugin.weights.sources import reading_safely


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


def load_config(args: argparse.Namespace) -> Config:
    """Read the config file, apply ``--cfg-options``, then the common flags. See :func:`read_config`."""
    os.environ.setdefault('LOCAL_RANK', str(args.local_rank))
    cfg = read_config(args.config, args.cfg_options)
    cfg.launcher = args.launcher
    cfg.work_dir = args.work_dir or cfg.get('work_dir') or str(Path('work_dirs', Path(args.config).stem))
    apply_loader_defaults(cfg, args.no_pin_memory)
    return cfg


def build_runner(cfg: Config, loaders: Sequence[str] = LOADERS) -> mmengine.runner.Runner:
    """Check the config and build the runner.

    Args:
        cfg: the config.
        loaders: the data loaders that will be used.

    Raises:
        ConfigError: see :func:`~vit_plugin.engine.checks.check_config`.
    """
    if cfg.launcher != 'none':
        init_distributed(cfg.launcher, cfg.get('env_cfg'))
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


def check_device(device: str) -> None:
    """Raise a ``ConfigError`` if this machine does not have the device."""
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(f'--device {device!r} is not in this machine ({first_line(error)}); give --device '
                          f'{get_device()}.') from error


def at_least(least: float, kind: type = int, most: float = math.inf) -> Callable[[str], float]:
    """The type of a flag for a finite number with bounds."""
    def number(text: str) -> float:
        value = kind(text)
        if not least <= value <= most or value == math.inf:
            bounds = f'between {least} and {most}' if most < math.inf else f'{least} or more'
            raise argparse.ArgumentTypeError(f'{text} is not {"finite" if value == math.inf else bounds}')
        return value

    number.__name__ = kind.__name__
    return number


class TrainingError(RuntimeError):
    """An unknown error after the first step. It keeps its traceback, because repeating such a run is expensive."""


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
        if traceback or isinstance(error, TrainingError):
            raise
        raise SystemExit(f'Error: {report_of_rank(sentence(error))}') from error


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

    Raises:
        TrainingError: in place of an unknown error after the first step.
    """
    interrupts: list[int] = []

    def interrupt(number: int, frame: object) -> None:
        interrupts.append(number)
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    except BaseException as error:
        if not interrupts:
            if runner.iter and isinstance(error, Exception) and not explained(error):
                raise TrainingError(f'The training ended after {runner.iter} iterations.') from error
            raise
        last = Path(runner.work_dir, MARKER)
        kept = f'the last checkpoint is {last.read_text()}; continue with --resume' if last.is_file() else (
            'there was no checkpoint yet')
        said = f'Interrupted after {runner.iter} iterations: {kept}.'
        raise SystemExit(said if is_main_process() else 1) from None
    finally:
        signal.signal(signal.SIGINT, previous)
