"""Unreadable samples, and the list of them that all workers and processes write."""

import errno
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from anyfolder.complete import append_line
from vit_plugin.errors import ConfigError

# Files in the work directory that list the unreadable samples of each split.
LISTS = dict(train='unreadable.txt', val='unreadable_val.txt', test='unreadable_test.txt')
ATTEMPTS = 10  # samples in a row that may be unreadable
MAX_REASON_CHARACTERS = 200
# Errors of the machine, not of a file.
MACHINE_ERRORS = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC, errno.EDQUOT, errno.EROFS}


class UnreadableError(ConfigError):
    """A file of the data set cannot be read.

    Attributes:
        path: the file.
        reason: why, in a few words.
    """

    def __init__(self, message: str, path: str = '', reason: str = '') -> None:
        super().__init__(message)
        self.path, self.reason = path, reason


class UnreadableFile(NamedTuple):
    """A file that could not be read, at a position of the run."""

    position: int
    path: str
    reason: str


def unreadable_file(
    error: Exception, dataset: Any = None, index: int = 0
) -> tuple[str, str] | None:
    """The file and reason if an error means an unreadable sample, or None for any other error.

    A sample is unreadable if it raises

    - an :class:`UnreadableError`, as the readers of this package do,
    - an ``OSError`` (a file that is missing, forbidden, cut off or not an image for Pillow, or a
      failing disk), unless it is about the machine (too many open files, no memory, no space),
    - what MMCV's ``LoadImageFromFile`` raises where OpenCV cannot decode a file.

    Args:
        error: the exception.
        dataset: the data set. It knows the file if the error does not.
        index: the index of the sample in the data set.
    """
    if isinstance(error, UnreadableError):
        return error.path, error.reason
    if isinstance(error, OSError):
        if error.errno in MACHINE_ERRORS:
            return None
    elif not (
        (isinstance(error, AssertionError) and f'{error}'.startswith('failed to load image'))
        or (type(error).__module__ == 'cv2' and 'imdecode' in f'{error}')
    ):
        return None
    # Data sets of MMEngine have this method.
    info = dataset.get_data_info(index) if hasattr(dataset, 'get_data_info') else {}
    path = info.get('img_path') or getattr(error, 'filename', None) or f'sample {index}'
    reason = ' '.join(f'{type(error).__name__}: {error}'.split())
    return str(path), reason[:MAX_REASON_CHARACTERS]


@dataclass(frozen=True)
class UnreadableList:
    """The file that lists what could not be read, one line each: position, file and reason."""

    path: Path

    def add(self, entry: UnreadableFile) -> None:
        """Add a line, see :func:`~anyfolder.complete.append_line`."""
        line = '\t'.join(' '.join(str(part).split()) for part in entry)
        append_line(self.path, os.fsencode(line))

    def read(self) -> list[UnreadableFile]:
        """The entries, each file once per position, since a resumed run may read it again."""
        if not self.path.is_file():
            return []
        lines = (os.fsdecode(line).split('\t', 2) for line in self.path.read_bytes().splitlines())
        return list(
            {
                (parts[0], parts[1]): UnreadableFile(int(parts[0]), *parts[1:])
                for parts in lines
                if len(parts) == 3 and parts[0].isdecimal()
            }.values()
        )
