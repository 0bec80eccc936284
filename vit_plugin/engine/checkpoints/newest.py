"""The newest complete checkpoint of a run."""

import logging
import os
import re
import zipfile
from pathlib import Path

from mmengine.logging import print_log

from vit_plugin.errors import ConfigError
from vit_plugin.weights.reading.folders import MANIFEST, check_complete, is_checkpoint_folder
from vit_plugin.weights.reading.pickles import check_archive

from .hook import MARKER

NUMBERED = re.compile(r'(epoch|iter)_\d+(\.pth)?')


def newest_checkpoint(work_dir: str | Path) -> str | None:
    """The newest complete checkpoint of a run: the one its marker names, or one written later.

    The marker may be missing or torn, because the machine may have died while it or its checkpoint
    was written. Then, and if what it names is damaged, the checkpoint that was written last counts.

    Returns:
        Its path; a URL that the marker has, as it is; None if there is neither a marker nor a
        checkpoint.

    Raises:
        ConfigError: if there are checkpoints but none is complete, or the one that the marker names
            is gone.
    """
    marker = Path(work_dir, MARKER)
    text = marker.read_text(errors='replace').strip('\0 \n') if marker.is_file() else ''
    if '://' in text:
        return text
    marked = Path(text)
    is_there = bool(marked.name) and (os.path.isfile(marked) or is_checkpoint_folder(marked))
    # Otherwise the marker is torn.
    is_named = is_there or NUMBERED.fullmatch(marked.name) is not None
    folder = (
        marked.parent
        if is_named and os.path.isdir(marked.parent) and marked.parent != Path()
        else Path(work_dir)
    )
    found = sorted(
        (path for path in folder.iterdir() if _is_checkpoint(path)), key=_time, reverse=True
    )
    if is_named:
        marked = folder / marked.name
        later = [
            path for path in found if path != marked and _time(path) > marker.stat().st_mtime_ns
        ]
        found = [*later, marked, *(path for path in found if path != marked and path not in later)]
    for path in found:
        if is_complete(path):
            if path != found[0]:
                print_log(
                    f'{found[0].name} is damaged or missing: resuming from {path.name}, the '
                    'newest complete checkpoint.',
                    'current',
                    logging.WARNING,
                )
            return str(path)
    if not found:
        return None
    remedy = 'give one with --resume CHECKPOINT, or start anew in another folder with --work-dir.'
    if any(path.exists() for path in found):
        raise ConfigError(f'No checkpoint in {str(work_dir)!r} can be read to its end; {remedy}')
    raise ConfigError(f'{str(marker)!r} names {text!r}, which is not there; {remedy}')


def _is_checkpoint(path: Path) -> bool:
    match = NUMBERED.fullmatch(path.name)
    return match is not None and (path.is_file() if match[2] else is_checkpoint_folder(path))


def _time(path: Path) -> int:
    """When a checkpoint was written, in nanoseconds."""
    return (path / MANIFEST if path.is_dir() else path).stat().st_mtime_ns


def is_complete(path: Path) -> bool:
    """Return whether a checkpoint is intact, by torch's checksums (file) or a manifest (folder).

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
