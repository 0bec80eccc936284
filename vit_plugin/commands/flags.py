"""The flags that commands share, parsed before torch is imported: ``--help`` and typos are fast."""

import argparse
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vit_plugin.errors import first_line
from vit_plugin.suggestions import alternatives

if TYPE_CHECKING:
    from vit_plugin.inference.trained_model import TrainedModel


class KeyValue(argparse.Action):
    """Reads ``KEY=VALUE`` as MMEngine does. Anything else is an error of the command line."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Sequence[str],  # type: ignore[override]
        option_string: str | None = None,
    ) -> None:
        for value in values:
            if not value.partition('=')[0] or '=' not in value:
                parser.error(f'{option_string}: {value!r} is not of the form KEY=VALUE')
        from mmengine.config import DictAction

        try:
            DictAction(self.option_strings, self.dest)(parser, namespace, values, option_string)
        except (AssertionError, ValueError, IndexError) as error:
            parser.error(
                f'{option_string}: {" ".join(values)!r} cannot be read ({first_line(error)})'
            )
        except RecursionError:  # MMEngine's parser recurses without end on a dict
            parser.error(
                '--cfg-options takes plain values and lists of them; write dicts in a config file.'
            )


def at_least(least: float, kind: type = int, most: float = math.inf) -> Callable[[str], float]:
    """The argparse type of a finite number of type ``kind``, from ``least`` to ``most``."""

    def number(text: str) -> float:
        value = kind(text)
        if not least <= value <= most or value == math.inf:
            bounds = f'between {least} and {most}' if most < math.inf else f'{least} or more'
            raise argparse.ArgumentTypeError(
                f'{text} is not {"finite" if value == math.inf else bounds}'
            )
        return value

    number.__name__ = kind.__name__  # argparse names the type in its errors: "invalid int value"
    return number


def a_path(text: str) -> Path:
    """The argparse type of a path to write. The shell does not expand ``--out=~/x``."""
    return Path(os.path.expanduser(text))


a_path.__name__ = 'Path'


def a_file(*suffixes: str) -> Callable[[str], Path]:
    """The argparse type of a file to write, with one of these suffixes."""

    def path(text: str) -> Path:
        if Path(text).suffix not in suffixes:
            raise argparse.ArgumentTypeError(f'{text!r} must end in {alternatives(suffixes)}')
        return a_path(text)

    path.__name__ = 'Path'
    return path


def a_folder(*suffixes: str) -> Callable[[str], Path]:
    """The argparse type of a folder to write to, or of a file with one of these suffixes.

    A name with another suffix is rejected as that of a file, unless the folder exists or the name
    ends with a slash.
    """

    def path(text: str) -> Path:
        target = a_path(text)
        suffix = target.suffix.lower()
        looks_like_a_file = suffix[1:2].isalpha() and suffix not in suffixes
        if looks_like_a_file and not text.endswith(('/', os.sep)) and not os.path.isdir(target):
            files = f'a file in {alternatives(suffixes)}, or ' if suffixes else ''
            raise argparse.ArgumentTypeError(
                f'{text!r} ends in {suffix}, which cannot be written; give {files}a folder, with a '
                f'/ at the end if its name has a dot: {text}/'
            )
        return target

    path.__name__ = 'Path'
    return path


# Flags of several commands. A command may override their options, such as `help`.
FLAGS: dict[str, dict[str, Any]] = {
    'checkpoint': dict(
        metavar='CHECKPOINT',
        help='checkpoint, folder of a run, timm://NAME or hf://USER/NAME',
    ),
    'config': dict(metavar='CONFIG', help='config file'),
    'images': dict(nargs='+', metavar='IMAGE', help='image file, folder of images, or URL'),
    '--amp': dict(action='store_true', help='automatic mixed precision; bfloat16 on a CPU'),
    '--arch': dict(
        help='arch of weights without a config, such as B/16; default for timm://NAME: the same'
    ),
    '--batch-size': dict(
        type=at_least(1), metavar='IMAGES', help='images at once; default: %(default)s'
    ),
    '--cfg-options': dict(
        nargs='+',
        action=KeyValue,
        metavar='KEY=VALUE',
        help='change settings of the config, e.g. randomness.seed=1 model.backbone.arch=S/16',
    ),
    '--checkpoint': dict(
        dest='which',
        metavar='NAME',
        help="which checkpoint of a run's folder: best, last, or the name of a file; default: the "
        'best if one was saved, otherwise the last',
    ),
    '--config': dict(help='config of the model; default: the one that the checkpoint holds'),
    '--data': dict(metavar='FOLDER', type=os.path.expanduser),
    '--device': dict(help='default: a GPU if there is one'),
    '--dtype': dict(choices=('float32', 'float16', 'bfloat16')),
    '--epochs': dict(type=at_least(1), help='default: by the number of images'),
    '--img-size': dict(type=at_least(1), metavar='PIXELS'),
    '--launcher': dict(
        choices=['none', 'pytorch', 'slurm', 'mpi'],
        default='none',
        help='what started the processes; default: none, for one process',
    ),
    '--no-flip': dict(
        action='store_true',
        default=None,
        help='do not flip images, since left and right matter, as in letters',
    ),
    '--no-pin-memory': dict(action='store_true', help='do not pin the memory of the data loaders'),
    '--out': dict(type=a_path),
    '--resume': dict(
        nargs='?',
        const='auto',
        metavar='CHECKPOINT',
        help='continue from the checkpoint; default: the last one in the work directory',
    ),
    '--resume-changed': dict(
        action='store_true',
        help='continue although the config or the data were changed, and apply the changes',
    ),
    '--teacher': dict(
        metavar='MODEL',
        help='learn from this model too: the folder of a run, a checkpoint, or timm://NAME',
    ),
    '--verbose': dict(action='store_true', help='show all of the log, as its file has it'),
    '--weights': dict(
        help='weights to start from: a path, a run, https://, timm:// or hf://, or the name of a '
        'published detector'
    ),
    '--work-dir': dict(type=os.path.expanduser, help='folder for logs, checkpoints and metrics'),
}


def add_flags(parser: argparse._ActionsContainer, *names: str, **changes: Any) -> None:
    """Add rows of :data:`FLAGS`.

    ``changes`` override the options of ``add_argument`` in the table.
    """
    for name in names:
        parser.add_argument(name, **{**FLAGS[name], **changes})


def add_target(parser: argparse.ArgumentParser, help: str, **changes: Any) -> None:
    """Add a required ``--out``, whose value may also follow the checkpoint without the flag.

    ``convert RUN model.pth`` is ``convert RUN --out model.pth``, as with ``cp``.
    """
    out_type, absent = changes.get('type', a_path), argparse.SUPPRESS
    group = parser.add_mutually_exclusive_group(required=True)
    add_flags(group, '--out', help=f'{help}; --out may be left out', **changes)
    group.add_argument(
        'out',
        nargs='?',
        default=absent,
        # argparse also converts the default.
        type=lambda text: text if text is absent else out_type(text),
        help=argparse.SUPPRESS,
    )


def add_run_arguments(parser: argparse._ActionsContainer) -> None:
    """Add the flags that OpenMMLab's `train.py` and `test.py` share."""
    add_flags(parser, '--work-dir', '--amp', '--verbose', '--no-pin-memory', '--cfg-options')
    add_flags(parser, '--launcher')
    # Older launchers pass this to the script. torchrun sets an environment variable instead.
    parser.add_argument('--local_rank', '--local-rank', type=int, default=0, help=argparse.SUPPRESS)


# The arguments of `add_data_arguments`.
DATA_ARGUMENTS = ('arch', 'weights', 'teacher', 'epochs', 'batch_size', 'img_size', 'no_flip')


def collect_given(args: argparse.Namespace, *more: str) -> dict[str, Any]:
    """The values of those flags of :func:`add_data_arguments`, and of ``more``, that were given."""
    values = {name: getattr(args, name) for name in (*DATA_ARGUMENTS, *more)}
    return {name: value for name, value in values.items() if value is not None}


def add_data_arguments(group: argparse._ActionsContainer) -> None:
    """Add the flags that all trainings on a folder share, pre-training included."""
    add_flags(
        group,
        '--arch',
        help='the backbone, such as R50+B/16; default: that of --weights, or a small hybrid',
    )
    add_flags(group, '--weights', '--teacher', '--epochs')
    add_flags(group, '--batch-size', help='default: by the number of images')
    add_flags(
        group,
        '--img-size',
        help='longer side of the images in pixels; default: that of the weights, or by the '
        'images and the boxes',
    )
    add_flags(group, '--no-flip')


def add_model_arguments(parser: argparse.ArgumentParser, **changes: Any) -> None:
    """Add the flags of :func:`load_model`.

    ``changes`` are options of the argument ``checkpoint``.
    """
    add_flags(parser, 'checkpoint', **changes)
    add_flags(parser, '--checkpoint', '--config', '--arch', '--device', '--cfg-options')


def load_model(args: argparse.Namespace, classify: bool = True) -> 'TrainedModel':
    """The model that the flags name, see :func:`~vit_plugin.inference.load.load`."""
    from vit_plugin.inference.load import load

    return load(
        args.checkpoint,
        args.config,
        args.arch,
        args.device,
        args.cfg_options,
        classify,
        args.which,
    )
