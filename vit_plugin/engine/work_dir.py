"""One training at a time in a work directory."""

import json
import logging
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout
from mmengine.dist import is_main_process
from mmengine.logging import print_log

from vit_plugin.errors import ConfigError
from vit_plugin.files.complete import write_text

from .distributed import from_rank_0

LOCK, OWNER = '.lock', '.running.json'
PATIENCE = 10.0  # seconds in which the data workers of a killed run, which share its lock, end


@contextmanager
def alone_in(work_dir: str | Path) -> Iterator[None]:
    """Lock the work directory for this run. The system unlocks it however the process ends.

    Every process of a run calls it, and the main process holds the lock. It may be called within
    itself.

    Raises:
        ConfigError: in all processes, if another run trains there. It names that run.
    """
    path, owner = Path(work_dir, LOCK).absolute(), Path(work_dir, OWNER)
    lock = FileLock(path, timeout=PATIENCE, is_singleton=True)

    def take() -> None:
        try:
            lock.acquire()
        except Timeout as error:
            raise ConfigError(
                f'In {str(work_dir)!r} a run is training already ({_named(owner)}); wait for its '
                'end, or give another --work-dir.'
            ) from error
        except (OSError, NotImplementedError) as error:
            print_log(
                f'{str(work_dir)!r} has no locks ({error}): do not start a second training there.',
                'current',
                logging.WARNING,
            )
        write_text(
            owner,
            json.dumps(dict(host=socket.gethostname(), pid=os.getpid(), since=time.strftime('%c'))),
        )

    Path(work_dir).mkdir(parents=True, exist_ok=True)
    from_rank_0(take)
    try:
        yield
    finally:
        if is_main_process():
            if lock.lock_counter <= 1:
                owner.unlink(missing_ok=True)
                path.unlink(missing_ok=True)
            lock.release()


def _named(owner: Path) -> str:
    try:
        run = json.loads(owner.read_text())
        return f'process {run["pid"]} on {run["host"]}, since {run["since"]}'
    except (OSError, ValueError, KeyError, TypeError):  # it has just begun or ended
        return 'another process'
