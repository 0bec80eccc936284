"""Parse a command line, check it before torch is imported, and run the command."""

import argparse
import logging
import sys
import warnings
from contextlib import nullcontext
from functools import partial
from types import ModuleType

from anyfolder.terminal import printable_lines
from vit_plugin.errors import ConfigError, MissingExtraError, explaining_imports, named_line
from vit_plugin.files.shipped import config_path
from vit_plugin.files.standard_streams import exit_interrupted
from vit_plugin.threads import share_cores

from .early import check_checkpoints, check_flags, check_process, check_working_directory
from .flag_rules import RULES, check_rules, given_flags


def build_parser(command: ModuleType) -> argparse.ArgumentParser:
    """The parser of a command. Its help begins with the docstring of the module."""
    parser = argparse.ArgumentParser(
        description=(command.__doc__ or '').replace('``', ''),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_arguments(parser)
    return parser


def run_command(command: ModuleType) -> None:
    """Parse the command line and run a command. Errors and Ctrl-C are one sentence by default.

    A wrong flag, a missing config or checkpoint, and whatever ``check`` rejects are reported before
    torch is imported. torch is not imported at all if ``needs_torch`` is false.

    Args:
        command: a module of :mod:`vit_plugin.commands`.
    """
    check_working_directory()
    parser = build_parser(command)
    parser.add_argument('--traceback', action='store_true', help='show where an error comes from')
    check_flags(parser, sys.argv[1:])
    args = parser.parse_args()
    args.given = given_flags(parser, sys.argv[1:])
    try:
        rules = RULES.get(command.__name__.rpartition('.')[2], ())
        check_rules(getattr(command, 'RULES', rules), parser, args)  # a benchmark has its own
        with nullcontext() if args.traceback else explaining_imports('The command'):
            _check_and_run(command, args)
    except KeyboardInterrupt:
        raise exit_interrupted() from None
    except (ConfigError, MissingExtraError) as error:  # raised before torch was imported
        if args.traceback:
            raise
        raise SystemExit(f'Error: {printable_lines(error)}') from None
    except OSError as error:  # such as a name that is too long, or a folder that may not be read
        if args.traceback:
            raise
        sentence = named_line(error)
        if error.filename:
            sentence = f'{str(error.filename)!r} cannot be used ({error.strerror}); check it'
        raise SystemExit(f'Error: {printable_lines(sentence)}.') from None


def _check_and_run(command: ModuleType, args: argparse.Namespace) -> None:
    """Check the values of flags, then run the command, with torch if it needs it."""
    check_process(args)
    configs = getattr(args, 'config', None) or []
    for config in [configs] if isinstance(configs, str) else configs:
        config_path(config)  # raises if the config does not exist
    if hasattr(command, 'check'):
        command.check(args)
    check_checkpoints(args)
    if hasattr(command, 'needs_torch') and not command.needs_torch(args):
        command.main(args)
        return
    silence_false_alarms()
    share_cores()
    from .one_sentence import run_main  # imports torch

    run_main(command.main, args, getattr(command, 'LESS_MEMORY', None))


# Name of a logger -> text in its messages about features that nobody asked for.
FALSE_ALARMS = {
    # torch, about a type of torchao, which transformers imports wherever it is installed.
    'torch.utils._pytree': 'Enum subclass',
    # torch's exporter, about the empty axes of a squeeze, which it writes correctly.
    'onnx_ir._convenience': 'Attribute type is ambiguous',
}


def silence_false_alarms() -> None:
    """Silence messages of other packages about features that nobody asked for."""
    for message in (
        'Fail to import ``MultiScaleDeformableAttention``',  # about MMCV's compiled ops
        'faster_coco_eval is not installed',
        'For binary segmentation, we suggest',  # about a choice that the config has made
    ):
        warnings.filterwarnings('ignore', message)
    for logger, text in FALSE_ALARMS.items():
        logging.getLogger(logger).addFilter(partial(_lacks, text))


def _lacks(text: str, record: logging.LogRecord) -> bool:
    return text not in str(record.msg)
