"""Find the last and the best checkpoint in the folder of a run.

The marker ``last_checkpoint`` only tells which run counts. Its path and all modification times are
ignored, so a folder may be moved, copied or restored from an archive. For checkpoints at a URL, the
marker is the answer.
"""

import logging
import os
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from mmengine.logging import print_log

from vit_plugin.errors import ConfigError
from vit_plugin.weights.reading.files import read_checkpoint
from vit_plugin.weights.reading.folders import check_complete, is_checkpoint_folder, read_run
from vit_plugin.weights.reading.pickles import check_archive

from ..work_dir import OWNER

MARKER = 'last_checkpoint'
BEGAN = 'began'  # start of the run, the same in all its checkpoints
NUMBERED = re.compile(r'(epoch|iter)_\d+(\.pth)?')
BEST = re.compile(r'best_.+')
REMEDY = 'give another checkpoint, or start over with another --work-dir'


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


def newest_checkpoint(work_dir: str | Path, out_dir: str | Path | None = None) -> str | None:
    """The last complete checkpoint of a run, by the iteration that it holds.

    Checkpoints of the run that the marker names come first, since the folder may have later
    checkpoints of a longer, earlier run. The marker may be missing or incomplete if the machine
    died while it or its checkpoint was written. Then the run that began last counts.

    Args:
        work_dir: the folder of the run.
        out_dir: where its config puts the checkpoints. Default: ``work_dir``.

    Returns:
        Its path; the URL in the marker if ``out_dir`` is a URL; None if there is neither a marker
        nor a checkpoint.

    Raises:
        ConfigError: if there are checkpoints but none is complete, or if there is none but the
            marker names one, by a usual name or a URL.
    """
    text = _read_marker(work_dir)
    if '://' in str(out_dir):
        return text if text.startswith(f'{out_dir}/') else None
    folder, name = Path(out_dir or work_dir), _file_name(text)
    paths = list(folder.iterdir()) if folder.is_dir() else []
    checkpoints = [describe_checkpoint(path) for path in paths if _is_checkpoint(path, name)]
    marked = next((checkpoint for checkpoint in checkpoints if checkpoint.path.name == name), None)
    damaged = [text] if text and marked is None else []
    for checkpoint in _sort_newest_first(checkpoints, marked):
        if checkpoint.run is not None and is_complete(checkpoint.path):
            if damaged:
                print_log(
                    f'{", ".join(map(repr, damaged))} is damaged, or not in {str(folder)!r}: '
                    f'{checkpoint.path.name} is taken, the newest complete checkpoint there.',
                    'current',
                    logging.WARNING,
                )
            return str(checkpoint.path)
        damaged.append(checkpoint.path.name)
    if checkpoints:
        raise ConfigError(f'No checkpoint in {str(folder)!r} can be read to its end; {REMEDY}.')
    if '://' in text or NUMBERED.fullmatch(name):  # any other text is the rest of a damaged marker
        raise ConfigError(
            f'{str(Path(work_dir, MARKER))!r} names {text!r}, which is not there in '
            f'{str(folder)!r}; {REMEDY}.'
        )
    return None


def _read_marker(work_dir: str | Path) -> str:
    """The content of a run's marker, or ''."""
    marker = Path(work_dir, MARKER)
    if not marker.is_file():
        return ''
    return marker.read_text('utf-8', errors='surrogateescape').strip('\0 \n')


def _file_name(path: str) -> str:
    """The file name of a path, also of a Windows path or a URL."""
    return re.split(r'[\\/]', path)[-1]


def _sort_newest_first(
    checkpoints: list[FoundCheckpoint], marked: FoundCheckpoint | None
) -> list[FoundCheckpoint]:
    """Checkpoints, newest first, the run of the marked one before others.

    Checkpoints of other runs that are not earlier than the marked one are left out: a longer,
    earlier run has left them. An unreadable checkpoint is placed by the number in its name, or
    first if it is the marked one.
    """
    run = marked.run if marked else None
    if marked is not None and run is not None:
        checkpoints = [
            checkpoint
            for checkpoint in checkpoints
            if checkpoint.run in (None, run) or checkpoint.iteration < marked.iteration
        ]
    ordered = sorted(
        (checkpoint for checkpoint in checkpoints if checkpoint.run is not None),
        key=lambda checkpoint: (checkpoint.run == run, checkpoint.sort_key),
        reverse=True,
    )
    for checkpoint in checkpoints:
        if checkpoint.run is None:
            older = [i for i, other in enumerate(ordered) if other.number < checkpoint.number]
            index = 0 if checkpoint == marked else min(older, default=len(ordered))
            ordered.insert(index, checkpoint)
    return ordered


def best_checkpoint(folder: str | Path) -> tuple[str, list[str]] | None:
    """The best checkpoint of a run: the latest complete one for the run's first metric.

    A metric has only one best checkpoint, unless the machine died between writing it and deleting
    the one before. Best checkpoints of other runs in the same folder are left out.

    Returns:
        Its path, and the names of the best checkpoints of other metrics. None if there is none.
    """
    paths = list(Path(folder).iterdir())
    best_paths = [path for path in paths if _is_checkpoint(path, pattern=BEST)]
    if not best_paths:
        return None
    marked_name = _file_name(_read_marker(folder))
    resumable = [
        checkpoint
        for checkpoint in map(describe_checkpoint, filter(_is_checkpoint, paths))
        if checkpoint.run is not None
    ]
    last = next(
        (checkpoint for checkpoint in resumable if checkpoint.path.name == marked_name),
        max(resumable, key=lambda checkpoint: checkpoint.sort_key, default=None),
    )
    best_of_run = [
        checkpoint
        for checkpoint in map(describe_checkpoint, best_paths)
        if last is None or checkpoint.run == last.run or checkpoint.path.name in last.best
    ]
    by_metric: dict[str, Path] = {}
    for checkpoint in sorted(best_of_run, key=lambda checkpoint: checkpoint.sort_key, reverse=True):
        metric = re.sub(r'\d+(\.pth)?$', '', checkpoint.path.name)
        if metric not in by_metric and checkpoint.run is not None and is_complete(checkpoint.path):
            by_metric[metric] = checkpoint.path
    # Each checkpoint names the best ones in the order of the metrics.
    order = [name for checkpoint in best_of_run for name in checkpoint.best]
    chosen = sorted(
        (path.name for path in by_metric.values()),
        key=lambda name: (order.index(name) if name in order else len(order), name),
    )
    return (str(Path(folder, chosen[0])), chosen[1:]) if chosen else None


def holds_run(folder: str | Path) -> bool:
    """True if a folder has checkpoints, or if a run is training there or was killed early."""
    return os.path.isfile(Path(folder, OWNER)) or has_checkpoints(folder)


def has_checkpoints(folder: str | Path) -> bool:
    """True if a folder has checkpoints of a run, by their names."""
    names = os.listdir(folder) if os.path.isdir(folder) else ()
    return any(NUMBERED.fullmatch(name) or BEST.fullmatch(name) for name in names)


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


def _is_checkpoint(path: Path, name: str = '', pattern: re.Pattern[str] = NUMBERED) -> bool:
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
