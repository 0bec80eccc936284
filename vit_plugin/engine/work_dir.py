"""Guard the work directory: one training at a time, and all ranks of a sharded model see it."""

import json
import logging
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from filelock import FileLock, Timeout
from mmengine.dist import all_gather_object, get_world_size, is_main_process
from mmengine.logging import print_log

from anyfolder.complete import write_text
from vit_plugin.errors import ConfigError

from .distributed import from_rank_0

LOCK, OWNER = '.lock', '.running.json'  # the locked file, and one that describes the owner
# Seconds to wait for the lock: the data workers of a killed run share it until they have ended.
PATIENCE = 10.0
VISIBILITY_TIMEOUT = 10.0  # seconds until all machines see a file that one writes

_held = set[str]()  # the folders that this process has locked


@contextmanager
def lock_work_dir(work_dir: str | Path) -> Iterator[None]:
    """Lock the work directory for this run. The system unlocks it however the process ends.

    Every process of a run calls it, and the main process holds the lock. It is reentrant. On a file
    system without locks, it only warns.

    Raises:
        ConfigError: in all processes, if another run trains there. The message names that run.
    """
    folder, owner_file = os.path.realpath(work_dir), Path(work_dir, OWNER)
    if folder in _held:
        yield
        return
    lock = FileLock(Path(work_dir, LOCK), timeout=PATIENCE)

    def acquire() -> None:
        try:
            lock.acquire()
        except Timeout as error:
            raise ConfigError(
                f'A run is already training in {str(work_dir)!r} ({_describe_owner(owner_file)}); '
                'wait for its end, or give another --work-dir.'
            ) from error
        except (OSError, NotImplementedError) as error:
            print_log(
                f'{str(work_dir)!r} has no locks ({error}): do not start a second training there.',
                'current',
                logging.WARNING,
            )
        write_text(
            owner_file,
            json.dumps(dict(host=socket.gethostname(), pid=os.getpid(), since=time.strftime('%c'))),
        )

    Path(work_dir).mkdir(parents=True, exist_ok=True)
    from_rank_0(acquire)
    _held.add(folder)
    try:
        yield
    finally:
        _held.remove(folder)
        if is_main_process():
            for path in (owner_file, Path(work_dir, LOCK)):
                path.unlink(missing_ok=True)
            lock.release()


def _describe_owner(owner_file: Path) -> str:
    try:
        run = json.loads(owner_file.read_text())
        return f'process {run["pid"]} on {run["host"]}, since {run["since"]}'
    except (OSError, ValueError, KeyError, TypeError):  # the run has just begun or ended
        return 'another process'


def describe_blind_rank(folder: str | Path) -> str | None:
    """A message about the first rank that does not see what rank 0 writes. None if all see it.

    Every rank calls it, with its own path of the folder.
    """

    def write() -> str:
        # A new name each time, since some file systems cache that a file is missing.
        token = f'.shared.{uuid4().hex[:8]}'
        write_text(Path(folder, token), token)
        return token

    if get_world_size() == 1:
        return None
    token = from_rank_0(write)
    path, end = Path(folder, token), time.monotonic() + VISIBILITY_TIMEOUT
    while not path.is_file() and time.monotonic() < end:
        time.sleep(0.1)
    answers = all_gather_object((path.is_file(), f'{str(folder)!r} of {socket.gethostname()}'))
    if is_main_process():
        path.unlink(missing_ok=True)
    for rank, (is_visible, place) in enumerate(answers):
        if not is_visible:
            return f'rank {rank} does not see in {place} what rank 0 writes in {answers[0][1]}'
    return None
