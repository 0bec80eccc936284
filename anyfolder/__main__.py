"""The command ``anyfolder``: check, draw or convert a folder of labeled images.

anyfolder check FOLDER
anyfolder check FOLDER --task detection --json
anyfolder convert FOLDER OUT --to yolo
anyfolder show FOLDER
"""

import argparse
import io
import json
import sys
from collections.abc import Sequence

from . import __version__
from .errors import InputError, MissingExtraError
from .terminal import printable_lines
from .wording import as_flag, using_words

# Copies of the keys of `reading.TASKS` and `targets.TARGETS`, whose modules take long to import:
# `--help` and wrong calls need no reader.
TASK_NAMES = ('classification', 'detection', 'instance', 'segmentation', 'panoptic', 'depth')
FORMAT_NAMES = ('coco', 'yolo', 'voc', 'folders', 'masks', 'csv')


def main(words: Sequence[str] | None = None) -> int:
    """Run a command line.

    Returns:
        The exit status: 0, 1 if the folder is rejected, 130 after Ctrl-C. A wrong call exits with
        status 2.
    """
    args = _parser().parse_args(words)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a name may have letters that its encoding lacks
            stream.reconfigure(errors='backslashreplace')
    try:
        with using_words(as_flag):
            from . import folder_commands

            getattr(folder_commands, args.command)(args)  # a function has the name of each command
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
        'anyfolder', description='Read folders of labeled images in any common format.'
    )
    parser.add_argument('--version', action='version', version=__version__)
    commands = parser.add_subparsers(required=True, metavar='COMMAND', dest='command')
    _add(
        commands,
        'check',
        'report the content of a folder, and what is left out and why',
        'Print the format of a folder, its splits, classes and counts, and what is left out or '
        'repaired with the first example. Nothing is written.',
    )
    convert = _add(
        commands,
        'convert',
        'write a folder in another format',
        'Write a folder in another format. The new folder only appears after it was read back with '
        'the same splits, classes, objects and maps.',
    )
    convert.add_argument('out', metavar='OUT', help='the folder to write, which must not exist yet')
    convert.add_argument('--to', choices=FORMAT_NAMES, required=True, help='the format')
    convert.add_argument(
        '--copy', action='store_true', help='copy images instead of linking to them'
    )
    convert.add_argument(
        '--lossy',
        action='store_true',
        help='leave out objects that the format cannot hold, instead of rejecting them',
    )
    show = _add(
        commands,
        'show',
        'draw the labels of some images',
        'Draw the labels of at most 16 images, evenly over the splits, on one sheet.',
    )
    show.add_argument(
        '--out', metavar='FILE', help='the PNG to write; default: FOLDER_labels.png here'
    )
    return parser


def _add(
    commands: 'argparse._SubParsersAction', name: str, summary: str, description: str
) -> argparse.ArgumentParser:
    """Add a command with the options for reading a folder, see :func:`anyfolder.read`."""
    parser = commands.add_parser(name, help=summary, description=description)
    parser.add_argument('folder', metavar='FOLDER', help='the folder of the data')
    parser.add_argument(
        '--task',
        choices=TASK_NAMES,
        help='what the labels are for; default: inferred from the folder',
    )
    parser.add_argument(
        '--layout',
        metavar='FILE',
        help='describes the folder; default: its anyfolder.yaml, or inferred from the files',
    )
    parser.add_argument(
        '--skip-invalid',
        action='store_true',
        help='leave out invalid boxes, masks and images, instead of rejecting them',
    )
    parser.add_argument(
        '--depth-scale',
        type=_positive,
        metavar='METERS',
        help='meters per unit in depth maps; default: 0.001 in PNG (0.00390625, 1 / 256, in that '
        'of KITTI), 1 in .npy and .tiff',
    )
    parser.add_argument(
        '--decode-all',
        action='store_true',
        help='decode all images, instead of 100 images and the headers of the others',
    )
    parser.add_argument('--json', action='store_true', help='print JSON, for programs')
    return parser


def _positive(text: str) -> float:
    """The number of an option, which must be finite and above 0."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float('inf'):
        raise argparse.ArgumentTypeError(f'{text!r} is not a number above 0')
    return number


if __name__ == '__main__':
    sys.exit(main())
