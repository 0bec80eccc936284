"""The command ``anyfolder``: what a folder of labeled images is.

anyfolder check FOLDER
anyfolder check FOLDER --task detection --json
"""

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

from . import __version__
from .errors import InputError, MissingExtraError
from .terminal import printable, printable_lines
from .wording import as_flag, worded

TASK_NAMES = ('classification', 'detection', 'instance', 'segmentation', 'panoptic', 'depth')


def main(words: Sequence[str] | None = None) -> int:
    """Run a command line; its status is 0, 1 where the folder is rejected, 2 for a wrong call."""
    args = _parser().parse_args(words)
    try:
        with worded(as_flag):
            args.command(args)
    except (InputError, MissingExtraError) as error:
        if args.json:
            print(json.dumps(dict(error=str(error)), indent=1))
        print(f'Error: {printable_lines(error)}', file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        'anyfolder', description='Read whatever folder of labeled images people have.'
    )
    parser.add_argument('--version', action='version', version=__version__)
    commands = parser.add_subparsers(required=True, metavar='COMMAND')
    check = commands.add_parser(
        'check',
        help='say what a folder is, and what is left out and why',
        description='Print the format of a folder, its splits, classes and counts, and what is '
        'left out or repaired with the first example. Nothing is written.',
    )
    check.add_argument('folder', metavar='FOLDER', help='of the data')
    check.add_argument(
        '--task', choices=TASK_NAMES, help='what the labels are for; default: what the folder is'
    )
    check.add_argument(
        '--layout',
        metavar='FILE',
        help='YAML that says what the folder holds; default: anyfolder.yaml in it',
    )
    check.add_argument(
        '--skip-invalid',
        action='store_true',
        help='leave out boxes, masks and images that cannot be right, rather than reject them',
    )
    check.add_argument(
        '--depth-scale',
        type=_positive,
        metavar='METERS',
        help="meters of a value of 1 in maps of depth; default: 0.001 in PNG (KITTI's: 1 / 256), 1 "
        'in .npy and .tiff',
    )
    check.add_argument(
        '--decode-all',
        action='store_true',
        help='decode all images, rather than the headers of all and 100 whole ones',
    )
    check.add_argument('--json', action='store_true', help='print JSON, for programs')
    check.set_defaults(command=_check)
    return parser


def _positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float('inf'):
        raise argparse.ArgumentTypeError(f'{text!r} is not a number above 0')
    return number


def _check(args: argparse.Namespace) -> None:
    from .facts import as_text, facts_of
    from .reading import read

    data = read(
        args.folder,
        args.task,
        layout=args.layout,
        skip_invalid=args.skip_invalid,
        depth_scale=args.depth_scale,
        decode_all=args.decode_all,
    )
    facts = facts_of(data.listing)
    if args.json:
        print(json.dumps(_for_programs(data.task, data.held_out, facts), indent=1))
        return
    held_out = ', a tenth of the images held out to validate' * data.held_out
    kinds = f'{len(data.classes)} classes' if data.classes else 'no classes'
    print(f'{printable(args.folder)}: {data.format}, for {data.task}, {kinds}{held_out}.')
    if data.classes:
        print(f'Classes: {", ".join(map(printable, data.classes))}')
    print(as_text(facts))


def _for_programs(task: str, held_out: bool, facts: dict[str, Any]) -> dict[str, Any]:
    """The facts under the names of :class:`anyfolder.Dataset`."""
    return dict(
        task=task,
        format=facts['form'],
        folder=facts['folder'],
        classes=facts['classes'],
        splits=facts['parts'],
        held_out=held_out,
        sizes=facts['sizes'],
        notes=facts['findings'],
    )


if __name__ == '__main__':
    sys.exit(main())
