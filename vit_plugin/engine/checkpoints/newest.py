"""The newest complete checkpoint of a run."""

import logging
import os
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

from mmengine.logging import print_log

from vit_plugin.errors import ConfigError
from vit_plugin.weights.files import read_checkpoint
from vit_plugin.weights.folders import MANIFEST, check_complete, is_checkpoint_folder, read_manifest
from vit_plugin.weights.pickles import check_archive

from .hook import MARKER

NUMBERED = re.compile(r'(epoch|iter)_(\d+)(\.pth)?')


def newest_checkpoint(work_dir: str | Path) -> str | None:
    """The newest complete checkpoint of the run that a work directory's marker names.

    The marker may be missing or torn, because the machine may have died while it or its checkpoint was written.

    Returns:
        Its path; a URL that the marker has, as it is; None if there is neither a marker nor a checkpoint.

    Raises:
        ConfigError: if there are checkpoints but none is complete, or the one that the marker names is gone.
    """
    marker = Path(work_dir, MARKER)
    text = marker.read_text(errors='replace').strip('\0 \n') if marker.is_file() else ''
    if '://' in text:
        return text
    marked = Path(text)
    is_there = marked.name and (os.path.isfile(marked) or is_checkpoint_folder(marked))
    if not is_there and not NUMBERED.fullmatch(marked.name):
        marked = Path()  # torn: what is left of its text may name another folder
    candidates = list(_newest_first(Path(work_dir), marker, marked))
    for i, path in enumerate(candidates):
        if is_complete(path):
            if i:
                print_log(f'{candidates[0].name} is damaged or missing: resuming from {path.name}, the newest '
                          'complete checkpoint.', 'current', logging.WARNING)
            return str(path)
    if any(path.exists() for path in candidates):
        raise ConfigError(f'No checkpoint in {str(work_dir)!r} can be read to its end; give one with --resume '
                          'CHECKPOINT, or start anew in another folder with --work-dir.')
    if NUMBERED.fullmatch(marked.name):
        raise ConfigError(f'{str(marker)!r} names {text!r}, which is not there; give its path with --resume '
                          'CHECKPOINT, or start anew in another folder with --work-dir.')
    return None


def _newest_first(work_dir: Path, marker: Path, marked: Path) -> Iterator[Path]:
    folder = marked.parent if marked.parent != Path() and os.path.isdir(marked.parent) else work_dir
    found = [path for path in folder.iterdir() if (match := NUMBERED.fullmatch(path.name)) and (
        path.is_file() if match[3] else is_checkpoint_folder(path))]
    if NUMBERED.fullmatch(marked.name):
        marked, written = folder / marked.name, marker.stat().st_mtime_ns
        # Later ones are of an earlier run, unless the machine died before it wrote the marker.
        found = [marked, *(path for path in found if path != marked and (
            _order(path)[1] >= written or _is_before(path, marked)))]
    elif marked.name:
        yield folder / marked.name
    epochs, iterations = (sorted((path for path in found if path.name.startswith(kind)), key=_order, reverse=True)
                          for kind in ('epoch', 'iter'))
    while epochs and iterations:
        position = _position(epochs[0])  # None if it is damaged, which is reported when it is looked at
        yield (epochs if position is None or position >= _order(iterations[0])[0] else iterations).pop(0)
    yield from epochs + iterations


def _order(path: Path) -> tuple[int, int]:
    """The number, and the time for a file and a folder of the same number."""
    file = path / MANIFEST if path.is_dir() else path
    return int(NUMBERED.sub(r'\2', path.name)), file.stat().st_mtime_ns if file.exists() else 0


def _is_before(path: Path, marked: Path) -> bool:
    if path.name.split('_')[0] == marked.name.split('_')[0]:
        return _order(path)[0] <= _order(marked)[0]
    position, last = _position(path), _position(marked)
    return position is None or last is None or position <= last


def _position(path: Path) -> int | None:
    """The iterations before a checkpoint. None if it cannot be read."""
    if path.name.startswith('iter'):
        return _order(path)[0]
    try:
        return (read_manifest(path)['iteration'] if path.is_dir() else
                read_checkpoint(path, mmap=True)['meta']['iter'])
    except (ConfigError, KeyError, TypeError):
        return None


def is_complete(path: Path) -> bool:
    """Whether every byte of a checkpoint is as it was written, by torch's checksums in a file or by a manifest.

    Other files must only be non-empty.
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
