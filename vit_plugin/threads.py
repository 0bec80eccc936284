"""Let torch's threads spin on an idle machine, and sleep next to other programs.

At the end of each operation the threads wait for the last of them. They spin first, which is
fastest while each thread has its own core: libgomp (torch for Linux) spins 300,000 times, and
libomp (torch for macOS and Windows) for 200 ms. If another program occupies a core, the thread that
waits for it keeps all others spinning, and their cores are wasted.

libgomp spins only 100 times if a process has more of its threads than cores. So a watcher thread
measures how long the process waits for cores that other programs occupy, and while that is long, it
adds enough sleeping libgomp threads. The process's own data workers do not count: next to them,
threads that spin are faster than threads that sleep. libomp has no such switch, so its spin time is
set to 1 ms.
"""

import ctypes
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Environment variables by which users set how threads wait, for each runtime.
OPENMP_VARIABLES = ('OMP_WAIT_POLICY',)  # both runtimes read it
LIBGOMP_VARIABLES = ('GOMP_SPINCOUNT', *OPENMP_VARIABLES)
LIBOMP_VARIABLES = ('KMP_BLOCKTIME', 'KMP_LIBRARY', 'KMP_USE_YIELD', *OPENMP_VARIABLES)
BRIEF_SPINNING = {'KMP_BLOCKTIME': '1'}  # milliseconds

PROCESSES = Path('/proc')
THREAD_TASKS = PROCESSES / 'self/task'
PERIOD = 0.5  # seconds between two measurements
# The machine counts as busy if the process waits for more cores than the first number, plus the
# second one for each thread. On two cores, 0.01 to 0.05 were measured on an idle machine, and 0.6
# to 0.8 next to a busy loop.
BUSY_CORES, BUSY_CORES_PER_THREAD = 0.1, 0.02


def share_cores() -> None:
    """Let torch's threads yield their cores quickly if other programs need them.

    Results do not change. Variables that the user has set take precedence. After torch has been
    imported, this does nothing, since its runtime has already read the environment.
    """
    if 'torch' in sys.modules:
        return
    if not {*LIBOMP_VARIABLES} & {*os.environ}:
        os.environ.update(BRIEF_SPINNING)
    if not {*LIBGOMP_VARIABLES} & {*os.environ} and (THREAD_TASKS.parent / 'schedstat').is_file():
        Watch().start()


class Watch(threading.Thread):
    """A thread that makes libgomp's threads sleep while the process waits for cores."""

    def __init__(self) -> None:
        super().__init__(name='watch of the cores', daemon=True)

    def run(self) -> None:
        while True:
            while not self._is_busy():
                pass
            with more_threads_than_cores(count_torch_threads()):
                while self._is_busy():
                    pass

    def _is_busy(self) -> bool:
        """Measure for :data:`PERIOD` seconds whether other programs need the cores."""
        start, waited_before = time.perf_counter(), seconds_waited()
        ran_before = read_worker_seconds()
        time.sleep(PERIOD)
        # A core that a data worker used is not one that another program occupied.
        used_by_workers = sum(
            ran - ran_before.get(pid, 0.0) for pid, ran in read_worker_seconds().items()
        )
        waited = seconds_waited() - waited_before - used_by_workers
        cores = waited / (time.perf_counter() - start)
        threads = count_torch_threads()
        return threads > 1 and cores > BUSY_CORES + BUSY_CORES_PER_THREAD * threads


def count_torch_threads() -> int:
    """torch's number of threads, or 1 until torch has been imported."""
    torch = sys.modules.get('torch')
    count = getattr(torch, 'get_num_threads', None)
    return count() if count else 1


def seconds_waited() -> float:
    """Total seconds in which threads of this process were ready to run but had no core."""
    return sum(waited for _, waited in read_schedule(THREAD_TASKS))


def read_worker_seconds() -> dict[str, float]:
    """Seconds that each child of this process has run, by its process ID."""
    lists = read_each(THREAD_TASKS, 'children')
    return {
        pid: sum(ran for ran, _ in read_schedule(PROCESSES / pid / 'task'))
        for pid in ' '.join(lists).split()
    }


def read_schedule(tasks: Path) -> Iterator[tuple[float, float]]:
    """Seconds on a core and seconds waiting for one, for each thread of a process."""
    for text in read_each(tasks, 'schedstat'):
        running, waiting, _ = text.split()  # nanoseconds, and the number of time slices
        yield int(running) / 1e9, int(waiting) / 1e9


def read_each(tasks: Path, name: str) -> Iterator[str]:
    """Contents of a file of each thread. A thread or process that has ended has none."""
    try:
        threads = os.listdir(tasks)
    except OSError:
        return
    for thread in threads:
        try:
            yield (tasks / thread / name).read_text()
        except OSError:
            continue


@contextmanager
def more_threads_than_cores(threads: int) -> Iterator[None]:
    """Within this context, sleeping threads make each libgomp exceed the number of cores.

    Args:
        threads: number of threads that libgomp already has.
    """
    # The first thread of a team, which starts it, does not count.
    team = max(len(os.sched_getaffinity(0)) - threads, 0) + 2
    nothing = ctypes.CDLL(None).free  # freeing NULL does nothing
    started, ended = threading.Event(), threading.Event()

    def hold_team() -> None:
        for path in loaded_libgomps():
            ctypes.CDLL(path).GOMP_parallel(nothing, None, team, 0)
        started.set()
        ended.wait()  # keeps the team of this thread alive

    threading.Thread(target=hold_team, daemon=True).start()
    started.wait()
    try:
        yield
    finally:
        ended.set()


def loaded_libgomps() -> set[str]:
    """Paths of every libgomp that this process has loaded. Some packages bundle their own."""
    lines = Path('/proc/self/maps').read_text().splitlines()
    return {line.split(maxsplit=5)[-1] for line in lines if 'libgomp' in line}


def describe_threads(threads: int) -> str:
    """One sentence on the threads of torch and how they wait."""
    if threads == 1:
        return 'torch computes with 1 thread.'
    names = dict.fromkeys((*LIBGOMP_VARIABLES, *LIBOMP_VARIABLES))
    settings = [f'{name}={os.environ[name]}' for name in names if name in os.environ]
    if any(isinstance(thread, Watch) for thread in threading.enumerate()):
        settings = ['spinning, and asleep while other programs need their cores']
    waiting = ', '.join(settings) or "by the runtime's own defaults"
    return f'torch computes with {threads} threads, which wait for one another: {waiting}.'
