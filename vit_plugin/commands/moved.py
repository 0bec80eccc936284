"""Former commands that are now benchmarks of a clone. Their names stay for one release."""

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from vit_plugin.errors import ConfigError
from vit_plugin.files.shipped import PACKAGE_FOLDER

# Former command -> the module of the benchmark.
MOVED_COMMANDS = {'benchmark': 'speed', 'sweep': 'sweep', 'probe --masks': 'dense_probe'}


def moved_command(name: str, arguments: Sequence[str]) -> str | None:
    """The key of :data:`MOVED_COMMANDS` that a command line names, or None for other commands."""
    has_masks = any(word.partition('=')[0] == '--masks' for word in arguments)
    former = 'probe --masks' if name == 'probe' and has_masks else name
    return former if former in MOVED_COMMANDS else None


def run_moved_command(former: str, arguments: Sequence[str]) -> NoReturn:
    """Replace this process by the benchmark, and say where the command went.

    Raises:
        ConfigError: if the package is not installed from a clone, which has the benchmarks.
    """
    folder, name = PACKAGE_FOLDER.parent / 'benchmarks', MOVED_COMMANDS[former]
    notice = f'vit-plugin {former} is now python benchmarks {name}, in a clone of the repository'
    if not (folder / f'{name}.py').is_file():
        raise ConfigError(f'{notice}; clone it and run that.')
    print(f'{notice}; the former name goes with the next release.', file=sys.stderr, flush=True)
    os.execv(sys.executable, [sys.executable, str(folder), name, *arguments])
