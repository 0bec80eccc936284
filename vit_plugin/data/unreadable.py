"""Samples that cannot be read, and the list of them that all workers and processes write."""

import errno
import os
import sys
import traceback
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from vit_plugin.errors import ConfigError

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None

LIST = 'unreadable.txt'
ATTEMPTS = 10  # samples in a row that may be unreadable
# Errors of the machine, which say nothing about a file.
MACHINE = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC, errno.EDQUOT, errno.EROFS}


class UnreadableError(ConfigError):
    """A file of the data set cannot be read.

    Attributes:
        path: the file.
        reason: why, in a few words.
    """

    def __init__(self, message: str, path: str = '', reason: str = '') -> None:
        super().__init__(message)
        self.path, self.reason = path, reason


class Bad(NamedTuple):
    """A file that could not be read, at a position of the run."""
    position: int
    path: str
    reason: str


def unreadable(error: Exception) -> tuple[str, str] | None:
    """The file and the reason, if an error means that a sample cannot be read. Else None, and the error is one.

    Unreadable is what raises

    - an :class:`UnreadableError`, as the readers of this package do,
    - an ``OSError`` (a file that is missing, forbidden, cut off or no image for Pillow, a disk that fails), unless it
      is about the machine (too many open files, no memory, no space),
    - any error but a ``MemoryError`` inside MMCV's ``LoadImageFromFile`` or ``LoadAnnotations``, or a class derived
      from them. For a file that is no image they raise all kinds.
    """
    if isinstance(error, UnreadableError):
        return error.path, error.reason
    loading = _loading(error)
    if isinstance(error, (MemoryError, ConfigError)) or getattr(error, 'errno', None) in MACHINE:
        return None
    if not isinstance(error, OSError) and loading is None:
        return None
    path = (loading or {}).get('img_path') or getattr(error, 'filename', None) or 'a file without a name'
    return str(path), ' '.join(f'{type(error).__name__}: {error}'.split())[:200]


def _loading(error: Exception) -> dict | None:
    """What the loader of MMCV that raised the error was given, or None."""
    module = sys.modules.get('mmcv.transforms')  # it has raised nothing if it was not imported
    loaders = (module.LoadImageFromFile, module.LoadAnnotations) if module else ()
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if isinstance(frame.f_locals.get('self'), loaders):
            given = frame.f_locals.get('results')
            return given if isinstance(given, dict) else {}
    return None


@dataclass(frozen=True)
class UnreadableList:
    """The file with all that could not be read, a line for each: the position, the file and the reason."""

    path: Path

    def add(self, bad: Bad) -> None:
        """Add a line. Processes of several machines may do so at once."""
        line = '\t'.join(' '.join(str(part).split()) for part in bad) + '\n'
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path, 'ab', buffering=0) as file:
            if fcntl:
                with suppress(OSError):  # some file systems have no locks; on one machine the lines stay whole without
                    fcntl.lockf(file, fcntl.LOCK_EX)
            file.write(os.fsencode(line))

    def read(self) -> list[Bad]:
        """What is in the list, each file once for a position: a run that goes on may meet it again."""
        if not self.path.is_file():
            return []
        lines = (os.fsdecode(line).split('\t', 2) for line in self.path.read_bytes().splitlines())
        return list({parts[0] + parts[1]: Bad(int(parts[0]), *parts[1:]) for parts in lines
                     if len(parts) == 3 and parts[0].isdecimal()}.values())
