"""The folder of a training on data: a second try gets one of its own."""

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
from vit_plugin.engine.checkpoints.newest import holds_run
from vit_plugin.engine.distributed import is_first_rank
from vit_plugin.errors import ConfigError

CONFIG_NAME = 'config.py'
RELEASED = '.released.json'  # digests of the files of a training that ended without a checkpoint


@contextmanager
def released(folder: str | Path, at_end: bool = False) -> Iterator[None]:
    """Let other flags have the folder if what runs in this context fails before a checkpoint.

    A download that fails or a check would otherwise leave a config behind that the next training
    avoids. Files that somebody changes until then are still theirs.

    Args:
        folder: the work directory, with a config that was written for this training.
        at_end: whether it is released without an error, too.
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
    """The folder to write a training's files to, or with its run to continue.

    Args:
        folder: the folder that was given, or the first of those that may be taken. The others are
            ``folder-2`` and so on.
        files: what will be in it, by name.
        given: whether it must be this one.
        resume: whether to continue the run of the same config.

    Raises:
        ConfigError: if the one that was given holds another config or run, or if there is nothing
            to continue.
    """
    if given:
        if other := _other(folder, files):
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
    taken = [path for path in _there(folder) if holds_run(path)]
    if resume and taken:
        same = [path for path in taken if not _other(path, files)]
        if not same:
            raise ConfigError(
                f'--resume: the runs in {", ".join(taken)} have other flags or data; continue '
                f'one by vit-plugin train {taken[-1]}/{CONFIG_NAME} --resume, or leave --resume '
                'out.'
            )
        return same[-1]
    return next(path for path in _names(folder) if path not in taken and not _other(path, files))


def _names(folder: str) -> Iterator[str]:
    yield folder
    yield from (f'{folder}-{number}' for number in count(2))


def _there(folder: str) -> Iterator[str]:
    for path in _names(folder):
        if not os.path.exists(path):
            return
        yield path


def _other(folder: str, files: Mapping[str, str]) -> str:
    """The first of the files that is there with another content and not released, or nothing."""
    free = {}
    with suppress(OSError, ValueError):
        free = json.loads(read_text(Path(folder, RELEASED)))
    for name, text in files.items():
        path = Path(folder, name)
        if not path.is_file() or (name in free and free[name] == _digest(path)):
            continue
        if _content(name, read_text(path)) != _content(name, text):
            return name
    return ''


def _content(name: str, text: str) -> str:
    """What a file says: of a config, its settings but the name of its folder."""
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
