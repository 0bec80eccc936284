"""A checkpoint in the folder of a run: its name, its metadata, and whether it is complete."""

import os
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from vit_plugin.errors import ConfigError
from vit_plugin.weights.reading.files import read_checkpoint
from vit_plugin.weights.reading.folders import check_complete, is_checkpoint_folder, read_run
from vit_plugin.weights.reading.pickles import check_archive

from ..work_dir import OWNER

MARKER = 'last_checkpoint'
BEGAN = 'began'  # start of the run, the same in all its checkpoints
NUMBERED = re.compile(r'(epoch|iter)_\d+(\.pth)?')
BEST = re.compile(r'best_.+')


class FoundCheckpoint(NamedTuple):
    """A checkpoint in a folder, with its metadata. Its tensors are not read.

    Attributes:
        began: when its run began, as a timestamp of that machine's clock. Empty if unknown.
        iteration: its position, -1 if unknown.
        number: the number in its name.
        run: a value that is equal for all checkpoints of a run: ``began``, or without it the seed
            and the config. None if the checkpoint cannot be read.
        best: the names of the best checkpoints when it was saved, in the order of the metrics.
    """

    path: Path
    began: str
    iteration: int
    number: int
    run: Any
    best: tuple[str, ...]

    @property
    def sort_key(self) -> tuple[str, int, int]:
        """A key that sorts the checkpoints of one or several runs from the oldest to the newest."""
        return self.began, self.iteration, self.number


def describe_checkpoint(path: Path) -> FoundCheckpoint:
    """Read the metadata of a checkpoint, without its tensors."""
    number = _number_in(path.name)
    try:
        content = (
            read_run(path) if path.is_dir() else read_checkpoint(path, mmap=True, payload=False)
        )
    except (ConfigError, OSError, ValueError, TypeError, RecursionError):
        return FoundCheckpoint(path, began='', iteration=-1, number=number, run=None, best=())
    meta = _get_mapping(content, 'meta')
    info = _get_mapping(_get_mapping(content, 'message_hub'), 'runtime_info')
    began, iteration = info.get(BEGAN), meta.get('iter')
    if not isinstance(began, str):
        began = ''
    best = (value for key, value in info.items() if str(key).startswith('best_ckpt'))
    return FoundCheckpoint(
        path,
        began=began,
        iteration=iteration if isinstance(iteration, int) else -1,
        number=number,
        # Checkpoints of MMEngine and of versions before 0.1 do not record the start.
        run=began or (meta.get('seed'), meta.get('cfg')),
        best=tuple(Path(value).name for value in best if isinstance(value, str)),
    )


def _get_mapping(content: Any, name: str) -> Mapping[Any, Any]:
    value = content.get(name) if isinstance(content, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _number_in(name: str) -> int:
    """The last number in a file name, or -1."""
    numbers = re.findall(r'\d+', name)
    return int(numbers[-1]) if numbers else -1


def is_checkpoint(path: Path, name: str = '', pattern: re.Pattern[str] = NUMBERED) -> bool:
    """True if a path may be a checkpoint: it has this name, or its name matches the pattern.

    It must also be a file with a suffix, or a folder with a manifest.
    """
    if path.name != name and not pattern.fullmatch(path.name):
        return False
    return is_checkpoint_folder(path) or (path.is_file() and path.suffix != '')


def is_complete(path: Path) -> bool:
    """Return whether a checkpoint is intact, by torch's checksums (file) or a manifest (folder).

    Other files are complete unless they are empty or begin with zeros.
    """
    try:
        if path.is_dir():
            check_complete(path)
            return True
        with open(path, 'rb') as file:
            head = file.read(4)
        if not head.startswith(b'PK'):
            return bool(head.strip(b'\0'))
        check_archive(path)
        return True
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError):
        return False


def read_marker(work_dir: str | Path) -> str:
    """The content of a run's marker, or ''."""
    marker = Path(work_dir, MARKER)
    if not marker.is_file():
        return ''
    return marker.read_text('utf-8', errors='surrogateescape').strip('\0 \n')


def file_name(path: str) -> str:
    """The file name of a path, also of a Windows path or a URL."""
    return re.split(r'[\\/]', path)[-1]


def holds_run(folder: str | Path) -> bool:
    """True if a folder has a run's checkpoints or marker, or a run trains or was killed there."""
    return os.path.isfile(Path(folder, OWNER)) or has_checkpoints(folder)


def has_checkpoints(folder: str | Path) -> bool:
    """True if a folder has checkpoints of a run, by their names or by its marker."""
    names = os.listdir(folder) if os.path.isdir(folder) else ()
    return any(name == MARKER or NUMBERED.fullmatch(name) or BEST.fullmatch(name) for name in names)
