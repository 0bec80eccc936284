"""Check a command line before torch is imported."""

import argparse
import os
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

from vit_plugin.errors import ConfigError
from vit_plugin.from_folder.choices import DIGITS
from vit_plugin.launchers import check_launcher
from vit_plugin.project import declared_rows
from vit_plugin.suggestions import closest, did_you_mean

CHECKPOINT_FLAGS = ('checkpoint', 'weights', 'teacher', 'resume', 'into')  # name a checkpoint
CONFIG_SUFFIX, CONFIG_PREFIX = '.py', 'vit_plugin::'  # a config's name has one of the two
# How addresses in timm begin: the keys of published_run.TIMM_ADDRESSES, which needs MMEngine.
TIMM_STARTS = ('local-dir:', 'local_dir:', 'hf-hub:', 'hf_hub:')


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
    options = [option for option in parser._option_string_actions if option.startswith('--')]
    for previous, word in zip(['', *words], words, strict=False):
        name, equals, value = word.partition('=')
        if not word.strip() or (name.startswith('--') and equals and not value.strip()):
            flag = name.strip() or (previous if previous.startswith('--') else 'an argument')
            parser.error(f'{flag} is empty; give a value, or leave it out')
        if name == '--':  # only positional arguments follow
            return
        if name.startswith('--') and not any(option.startswith(name) for option in options):
            parser.error(f'unrecognized arguments: {name}{did_you_mean(name, options)}')


def check_checkpoints(args: argparse.Namespace) -> None:
    """Raise a ``ConfigError`` if a local checkpoint does not exist, and no model has that name."""
    for flag in CHECKPOINT_FLAGS:
        value = getattr(args, flag, None) or []
        for path in [value] if isinstance(value, str) else value:
            is_config = path.endswith(CONFIG_SUFFIX) or path.startswith(CONFIG_PREFIX)
            is_auto = flag == 'resume' and path == 'auto'
            is_address = '://' in path or path.startswith(TIMM_STARTS)
            # A signed address may be longer than the name of a file may be, so it is no path.
            if is_address or is_config or is_auto or Path(os.path.expanduser(path)).exists():
                continue
            published = declared_rows('offered')  # published models that a name stands for
            if path not in published:
                raise ConfigError(
                    f'There is no checkpoint file {path!r}{_suggest_name(path, published)}'
                )


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
        raise ConfigError(f'--data: there is no folder {folder!r}{_suggest_name(folder)}')


def _suggest_name(path: str, others: Collection[str] = ()) -> str:
    """The end of a sentence: the nearest name among ``others``, or in the same folder."""
    siblings: list[str] = []
    with suppress(OSError):  # the folder may not exist
        siblings = [sibling.name for sibling in Path(path).absolute().parent.iterdir()]
    near = [
        *closest(path, others),
        *(str(Path(path).with_name(name)) for name in closest(Path(path).name, siblings)),
    ]
    near = [name for name in near if name != path]  # a broken link has the name itself
    return f'; did you mean {near[0]!r}?' if near else '.'
