"""The work directory of a training on data: each new attempt gets its own."""

import ast
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import blake2b
from itertools import count
from pathlib import Path

from anyfolder.complete import write_text
from anyfolder.text import read_text
from vit_plugin.engine.checkpoints.found_checkpoint import holds_run
from vit_plugin.engine.distributed import is_first_rank
from vit_plugin.errors import ConfigError

CONFIG_NAME = 'config.py'
RELEASED = '.released.json'  # digests of the files of a training that ended without a checkpoint


@contextmanager
def release_if_failed(folder: str | Path, at_end: bool = False) -> Iterator[None]:
    """Let other flags reuse the folder if this context fails before the first checkpoint.

    Otherwise a failed download or a check would leave a config behind that the next training
    avoids. Files that a person has changed are not released.

    Args:
        folder: the work directory, with a config that was written for this training.
        at_end: whether to release it also if there is no error.
    """
    try:
        yield
    except BaseException:
        at_end = True
        raise
    finally:
        if at_end and is_first_rank() and not holds_run(folder):
            files = {path.name: _digest(path) for path in Path(folder).iterdir() if path.is_file()}
            write_text(Path(folder, RELEASED), json.dumps(files))


def _digest(path: Path) -> str:
    return blake2b(path.read_bytes(), digest_size=16).hexdigest()


def free_folder(folder: str, files: Mapping[str, str], given: bool, resume: bool) -> str:
    """The folder for a training's files, or the one with the run to continue.

    Args:
        folder: the folder that was given, or the first candidate. The next are ``folder-2`` and so
            on.
        files: the content to write, by file name.
        given: whether the user gave ``folder``, so that no other may be taken.
        resume: whether to continue the run of the same config.

    Raises:
        ConfigError: if a given folder holds another config, or a run that is not to be continued,
            or if none of the runs to continue has this config.
    """
    if given:
        if other := _find_conflict(folder, files):
            raise ConfigError(
                f'The work directory {folder!r} has another {other}; continue with that one by '
                f'vit-plugin train {folder}/{CONFIG_NAME}, or give another --work-dir.'
            )
        if holds_run(folder) and not resume:
            raise ConfigError(
                f'The work directory {folder!r} holds a run of the same config; continue it with '
                '--resume, or give another --work-dir.'
            )
        return folder
    runs = [path for path in _existing_folders(folder) if holds_run(path)]
    if resume and runs:
        matching = [path for path in runs if not _find_conflict(path, files)]
        if not matching:
            raise ConfigError(
                f'--resume: the runs in {", ".join(runs)} have other flags or data; continue '
                f'one by vit-plugin train {runs[-1]}/{CONFIG_NAME} --resume, or leave --resume '
                'out.'
            )
        return matching[-1]
    return next(
        path
        for path in _candidate_names(folder)
        if path not in runs and not _find_conflict(path, files)
    )


def _candidate_names(folder: str) -> Iterator[str]:
    """Yield ``folder``, ``folder-2``, ``folder-3`` and so on, without an end."""
    yield folder
    yield from (f'{folder}-{number}' for number in count(2))


def _existing_folders(folder: str) -> Iterator[str]:
    """Yield the candidates up to the first that does not exist."""
    for path in _candidate_names(folder):
        if not os.path.exists(path):
            return
        yield path


def _find_conflict(folder: str, files: Mapping[str, str]) -> str:
    """The first file that exists with other content and is not released, or ''."""
    digests = {}
    with suppress(OSError, ValueError):  # no such file, or one that was edited
        digests = json.loads(read_text(Path(folder, RELEASED)))
    for name, text in files.items():
        path = Path(folder, name)
        if not path.is_file() or (name in digests and digests[name] == _digest(path)):
            continue
        if _comparable_text(name, read_text(path)) != _comparable_text(name, text):
            return name
    return ''


def _comparable_text(name: str, text: str) -> str:
    """The content to compare: for a config, its settings without the name of its folder."""
    if name != CONFIG_NAME:
        return text
    try:
        nodes = ast.parse(text).body
    except (SyntaxError, ValueError):
        return text
    names = ('experiment_name', 'work_dir')
    return '\n'.join(
        ast.dump(node)
        for node in nodes
        if not isinstance(node, ast.Expr)  # the docstring
        and not (isinstance(node, ast.Assign) and getattr(node.targets[0], 'id', '') in names)
    )
