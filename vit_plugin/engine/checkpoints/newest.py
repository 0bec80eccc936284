"""Find the last checkpoint in the folder of a run.

The marker ``last_checkpoint`` only tells which run counts. Its path and all modification times are
ignored, so a folder may be moved, copied or restored from an archive. For checkpoints at a URL, the
marker is the answer.
"""

import logging
from pathlib import Path

from mmengine.logging import print_log

from vit_plugin.errors import ConfigError

from .found_checkpoint import (
    MARKER,
    NUMBERED,
    FoundCheckpoint,
    describe_checkpoint,
    file_name,
    is_checkpoint,
    is_complete,
    read_marker,
)

REMEDY = 'give another checkpoint, or start over with another --work-dir'


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
    text = read_marker(work_dir)
    if '://' in str(out_dir):
        return text if text.startswith(f'{out_dir}/') else None
    folder, name = Path(out_dir or work_dir), file_name(text)
    paths = list(folder.iterdir()) if folder.is_dir() else []
    checkpoints = [describe_checkpoint(path) for path in paths if is_checkpoint(path, name)]
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
