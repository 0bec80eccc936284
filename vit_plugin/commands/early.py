"""Check a command line before torch is imported."""

import argparse
import os
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

from vit_plugin.errors import ConfigError
from vit_plugin.from_folder.choices import DIGITS
from vit_plugin.launchers import check_launcher
from vit_plugin.project import declared
from vit_plugin.suggestions import closest, guess

CHECKPOINTS = ('checkpoint', 'weights', 'teacher', 'resume')  # flags that name a checkpoint
CONFIG = '.py', 'vit_plugin::'  # suffix or prefix of a config's name


def check_working_directory() -> None:
    """End the program if its working directory was removed: no relative path would resolve."""
    try:
        os.getcwd()
    except OSError as error:
        raise SystemExit(
            f'Error: the working directory cannot be used ({error.strerror}); change to one that '
            'is there, with cd.'
        ) from None


def check_flags(parser: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """End the program at an unknown option, with the nearest known one, or at an empty value."""
    known = [option for option in parser._option_string_actions if option.startswith('--')]
    for before, word in zip(['', *words], words, strict=False):
        name, equals, value = word.partition('=')
        if not word.strip() or (name.startswith('--') and equals and not value.strip()):
            flag = name or (before if before.startswith('--') else 'an argument')
            parser.error(f'{flag} is empty; give a value, or leave it out')
        if name == '--':
            return
        if name.startswith('--') and not any(option.startswith(name) for option in known):
            parser.error(f'unrecognized arguments: {name}{guess(name, known)}')


def check_checkpoints(args: argparse.Namespace) -> None:
    """Raise a ``ConfigError`` if a local checkpoint does not exist."""
    for flag in CHECKPOINTS:
        given = getattr(args, flag, None) or []
        for path in [given] if isinstance(given, str) else given:
            is_other = '://' in path or path.endswith(CONFIG[0]) or path.startswith(CONFIG[1])
            if is_other or (flag == 'resume' and path == 'auto') or Path(path).exists():
                continue
            if path not in (offered := declared('offered')):  # names of published models
                raise ConfigError(f'There is no checkpoint file {path!r}{_neighbor(path, offered)}')


def check_process(args: argparse.Namespace) -> None:
    """Raise a ``ConfigError`` if ``--launcher`` did not start this process."""
    if getattr(args, 'launcher', 'none') != 'none':
        os.environ.setdefault('LOCAL_RANK', str(args.local_rank))  # some launchers pass a flag
        check_launcher(args.launcher)


def check_data(folder: str) -> None:
    """Raise a ``ConfigError`` if the folder of ``--data`` does not exist."""
    if Path(folder).exists() and not Path(folder).is_dir():
        raise ConfigError(
            f'--data: {folder!r} is a file; give the folder of the images, extracted if this is an '
            'archive.'
        )
    if folder != DIGITS and not Path(folder).is_dir():
        raise ConfigError(f'--data: there is no folder {folder!r}{_neighbor(folder)}')


def _neighbor(path: str, others: Collection[str] = ()) -> str:
    """The end of a sentence: the nearest name in the same folder, or among ``others``."""
    names: list[str] = []
    with suppress(OSError):
        names = [path_beside.name for path_beside in Path(path).absolute().parent.iterdir()]
    near = [
        *closest(path, others),
        *(str(Path(path).with_name(name)) for name in closest(Path(path).name, names)),
    ]
    near = [one for one in near if one != path]  # the path exists, but is not a checkpoint
    return f'; did you mean {near[0]!r}?' if near else '.'
