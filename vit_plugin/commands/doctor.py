"""Find out why a training is worse than it should be: weights, pixels, maps, rates, data.

vit-plugin doctor CONFIG
vit-plugin doctor work_dirs/run

Each finding is one line, with its remedy. The exit status is 0 without findings, 1 with findings,
and 2 if the config cannot be read. Nothing is trained, downloaded or written.
"""

import json
import os
import sys
import warnings
from argparse import ArgumentParser, Namespace
from pathlib import Path

from anyfolder.terminal import printable_lines
from vit_plugin.errors import ConfigError
from vit_plugin.files.shipped import CONFIG_SUFFIXES, SHIPPED_PREFIX, config_path

from .flags import add_flags

WRONG_CALL = 2  # the exit status of a wrong command line, as in argparse


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        'subject',
        metavar='CONFIG|RUN',
        help='config file, which is run as a program; or the folder of a run or a checkpoint, '
        'whose config is read as data',
    )
    parser.add_argument('--json', action='store_true', help='print a list of findings as JSON')
    add_flags(parser, '--cfg-options')


def check(args: Namespace) -> None:
    """Check that the config or the run exists, without importing torch."""
    args.subject = os.path.expanduser(args.subject)
    try:
        if args.subject.startswith(SHIPPED_PREFIX) or Path(args.subject).suffix in CONFIG_SUFFIXES:
            config_path(args.subject)
        elif not Path(args.subject).exists():
            raise ConfigError(f'There is no config or run {args.subject!r}.')
    except ConfigError as error:
        _exit_with(error)


def _exit_with(error: ConfigError) -> None:
    print(f'Error: {printable_lines(error)}', file=sys.stderr)
    raise SystemExit(WRONG_CALL) from error


def main(args: Namespace) -> None:
    from vit_plugin.doctor import CHECKS, diagnose, examine

    warnings.simplefilter('ignore')  # the frameworks warn when they are imported
    try:
        examined = examine(args.subject, args.cfg_options)
    except ConfigError as error:
        if args.traceback:
            raise
        _exit_with(error)
    findings = list(diagnose(examined))
    if args.json:
        print(json.dumps([finding._asdict() for finding in findings], indent=1))
    else:
        for finding in findings:
            print(printable_lines(finding))
        if not findings:
            print(f'{len(CHECKS)} checks found nothing.')
    for note in dict.fromkeys(examined.unseen):
        print(f'Not examined: {printable_lines(note)}', file=sys.stderr)
    if findings:
        raise SystemExit(1)
