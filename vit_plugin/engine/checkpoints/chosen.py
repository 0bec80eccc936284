"""Choose a checkpoint from the folder of a run: the best, the last, or one by its name."""

import os
import re
from pathlib import Path

from vit_plugin.errors import ConfigError
from vit_plugin.weights.hub import is_of_hub
from vit_plugin.weights.hub_files import HUB_FILES
from vit_plugin.weights.reading.folders import is_checkpoint_folder

from .found_checkpoint import (
    BEST,
    NUMBERED,
    describe_checkpoint,
    file_name,
    is_checkpoint,
    is_complete,
    read_marker,
)
from .newest import newest_checkpoint

LAST, BEST_ONE = 'last', 'best'  # values of --checkpoint besides a name
PEFT_CONFIG = 'adapter_config.json'  # the file that peft writes next to an adapter


def choose_checkpoint(folder: str | Path, which: str | None = None) -> tuple[str, str]:
    """The checkpoint to use from a run's folder, and a sentence that names it.

    Args:
        folder: the folder.
        which: ``'best'``, ``'last'``, or the name of a checkpoint in the folder. Default: the best
            one if one was saved, otherwise the last.

    Raises:
        ConfigError: if there is no such checkpoint, or if none can be read, see
            :func:`~vit_plugin.engine.checkpoints.newest.newest_checkpoint`.
    """
    folder = str(folder)
    if which not in (None, LAST, BEST_ONE):
        path = _find_by_name(folder, which)
        return path, f'{folder}: {Path(path).name}.'
    best = best_checkpoint(folder) if which != LAST else None
    if best:
        path, others = best
        others_note = f' Others: {", ".join(others)}.' if others else ''
        return path, f'{folder}: the best checkpoint, {Path(path).name}.{others_note}'
    if which == BEST_ONE:
        raise ConfigError(
            f'--checkpoint best: the folder {folder!r} has no readable best checkpoint; one is '
            'saved only if default_hooks.checkpoint.save_best is set; give --checkpoint last.'
        )
    newest = newest_checkpoint(folder)
    if newest is not None:
        return newest, f'{folder}: the last checkpoint, {Path(newest).name}.'
    if Path(folder, PEFT_CONFIG).is_file():
        raise ConfigError(
            f'The folder {folder!r} has only the adapter of another model ({PEFT_CONFIG}); merge '
            'it into that model with merge_and_unload() of peft, and give what save_pretrained '
            'writes.'
        )
    if is_of_hub(folder):
        raise ConfigError(
            f'The folder {folder!r} has the config of a model and none of {", ".join(HUB_FILES)}; '
            'put one next to it, as save_pretrained of transformers writes them.'
        )
    raise ConfigError(
        f'The folder {folder!r} has no manifest.json of a checkpoint and no checkpoints of '
        'a run, perhaps because the run ended before its first checkpoint; train again, or '
        'give another path.'
    )


def best_checkpoint(folder: str | Path) -> tuple[str, list[str]] | None:
    """The best checkpoint of a run: the latest complete one for the run's first metric.

    A metric has only one best checkpoint, unless the machine died between writing it and deleting
    the one before. Best checkpoints of other runs in the same folder are left out.

    Returns:
        Its path, and the names of the best checkpoints of other metrics. None if there is none.
    """
    paths = list(Path(folder).iterdir())
    best_paths = [path for path in paths if is_checkpoint(path, pattern=BEST)]
    if not best_paths:
        return None
    marked_name = file_name(read_marker(folder))
    resumable = [
        checkpoint
        for checkpoint in map(describe_checkpoint, filter(is_checkpoint, paths))
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


def _find_by_name(folder: str, name: str) -> str:
    """The checkpoint of this name, or at this path, in the folder.

    Raises:
        ConfigError: if the folder does not have it.
    """
    for path in (Path(folder, name), Path(name)):
        exists = path.is_file() or is_checkpoint_folder(path)
        if exists and os.path.realpath(path.parent) == os.path.realpath(folder):
            return str(Path(folder, path.name))
    names = sorted(
        path.name
        for path in Path(folder).iterdir()
        if NUMBERED.fullmatch(path.name) or BEST.fullmatch(path.name)
    )
    raise ConfigError(
        f'--checkpoint {name}: the folder {folder!r} has no such checkpoint, but '
        f'{", ".join(names) or "none"}; give one of them, best or last.'
    )
