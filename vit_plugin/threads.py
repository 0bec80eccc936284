"""How torch's threads wait for one another: spinning alone on the machine, asleep next to others.

At the end of each operation the threads wait for the last of them. They spin first, which is
fastest while each has a core of its own: those of libgomp, in torch for Linux, 300,000 times, and
those of libomp, in torch for macOS and Windows, for 200 ms. Where another program holds a core, the
one thread that has to wait for it keeps all others spinning, and the cores do nothing else.

libgomp spins 100 times if a process has more of its threads than cores. So a thread of ours watches
how long the process waits for a core, and holds as many threads of libgomp as it takes, asleep,
while that is long. libomp has no such switch, and is told to spin for 1 ms.
"""

import ctypes
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# A user's choices of how threads wait, for each runtime.
OF_BOTH = ('OMP_WAIT_POLICY',)
OF_LIBGOMP = ('GOMP_SPINCOUNT', *OF_BOTH)
OF_LIBOMP = ('KMP_BLOCKTIME', 'KMP_LIBRARY', 'KMP_USE_YIELD', *OF_BOTH)
BRIEF = {'KMP_BLOCKTIME': '1'}  # milliseconds

THREAD_TASKS = Path('/proc/self/task')
PERIOD = 0.5  # seconds between two looks
# The cores that a process waits for where it has to share them: 0.01 to 0.05 on two idle cores, and
# 0.6 to 0.8 next to a busy loop. Each thread may wait a little.
BUSY, BUSY_PER_THREAD = 0.1, 0.02


def share_cores() -> None:
    """Let torch's threads give their cores to other programs soon, if there are such programs.

    It changes no result. Where the environment sets how threads wait, that holds, and nothing
    changes after torch has been imported, since its runtime has read the environment by then.
    """
    if 'torch' in sys.modules:
        return
    if not {*OF_LIBOMP} & {*os.environ}:
        os.environ.update(BRIEF)
    if not {*OF_LIBGOMP} & {*os.environ} and (THREAD_TASKS.parent / 'schedstat').is_file():
        Watch().start()


class Watch(threading.Thread):
    """Lets the threads of libgomp sleep while the process waits for cores."""

    def __init__(self) -> None:
        super().__init__(name='watch of the cores', daemon=True)

    def run(self) -> None:
        while True:
            while not self._is_busy():
                pass
            with more_threads_than_cores(threads_of_torch()):
                while self._is_busy():
                    pass

    def _is_busy(self) -> bool:
        """Look for :data:`PERIOD` seconds at what other programs leave to this one."""
        begun, waited = time.perf_counter(), seconds_waited()
        time.sleep(PERIOD)
        cores = (seconds_waited() - waited) / (time.perf_counter() - begun)
        threads = threads_of_torch()
        return threads > 1 and cores > BUSY + BUSY_PER_THREAD * threads


def threads_of_torch() -> int:
    """With how many threads torch computes: one until it has been imported."""
    torch = sys.modules.get('torch')
    count = getattr(torch, 'get_num_threads', None)
    return count() if count else 1


def seconds_waited() -> float:
    """How long the threads of this process have been ready to run, without a core, all together."""
    nanoseconds = 0
    for task in os.listdir(THREAD_TASKS):
        try:
            # Time on a core, time of waiting for one, and how often.
            nanoseconds += int((THREAD_TASKS / task / 'schedstat').read_text().split()[1])
        except OSError:  # the thread has ended
            continue
    return nanoseconds / 1e9


@contextmanager
def more_threads_than_cores(threads: int) -> Iterator[None]:
    """Hold threads of each libgomp in this process, asleep, that make them more than its cores.

    Args:
        threads: those that it has already.
    """
    # A team's first thread, the one that begins it, does not count.
    team = max(len(os.sched_getaffinity(0)) - threads, 0) + 2
    nothing = ctypes.CDLL(None).free  # freeing NULL does nothing
    started, ended = threading.Event(), threading.Event()

    def hold() -> None:
        for path in libgomps():
            ctypes.CDLL(path).GOMP_parallel(nothing, None, team, 0)
        started.set()
        ended.wait()  # keeps the team of this thread

    threading.Thread(target=hold, daemon=True).start()
    started.wait()
    try:
        yield
    finally:
        ended.set()


def libgomps() -> set[str]:
    """Paths of each libgomp that this process has loaded; other packages bring their own."""
    lines = Path('/proc/self/maps').read_text().splitlines()
    return {line.split(maxsplit=5)[-1] for line in lines if 'libgomp' in line}


def describe_threads(threads: int) -> str:
    """One sentence on the threads of torch and how they wait."""
    if threads == 1:
        return 'torch computes with 1 thread.'
    names = dict.fromkeys((*OF_LIBGOMP, *OF_LIBOMP))
    found = [f'{name}={os.environ[name]}' for name in names if name in os.environ]
    if any(isinstance(thread, Watch) for thread in threading.enumerate()):
        found = ['spinning, and asleep while other programs need their cores']
    waiting = ', '.join(found) or "by the runtime's own defaults"
    return f'torch computes with {threads} threads, which wait for one another: {waiting}.'
