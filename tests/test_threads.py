"""Commands decide how torch's threads wait for one another; importing the package does not."""

import os
import subprocess
import sys
import threading
import time

import pytest

from vit_plugin import threads
from vit_plugin.threads import (
    BRIEF_SPINNING,
    LIBGOMP_VARIABLES,
    LIBOMP_VARIABLES,
    PERIOD,
    PROCESSES,
    THREAD_TASKS,
    Watch,
    describe_threads,
    loaded_libgomps,
    more_threads_than_cores,
    read_schedule,
    read_worker_seconds,
    seconds_waited,
    share_cores,
)

on_linux = pytest.mark.skipif(not THREAD_TASKS.exists(), reason='libgomp needs Linux')


@pytest.fixture
def environment(monkeypatch):
    """``monkeypatch``, without variables that decide how threads wait."""
    for name in (*LIBGOMP_VARIABLES, *LIBOMP_VARIABLES):
        monkeypatch.setenv(name, '')  # so that it is restored
        monkeypatch.delenv(name)
    return monkeypatch


@pytest.fixture
def watches(monkeypatch):
    """The watches that were started; their threads do not run."""
    started: list[Watch] = []
    monkeypatch.setattr(Watch, 'start', lambda watch: started.append(watch))
    return started


def test_nothing_changes_after_torch_has_been_imported(environment, watches):
    share_cores()  # torch is imported here
    assert not watches
    assert not {*BRIEF_SPINNING} & {*os.environ}


@on_linux
def test_both_runtimes_are_configured_before_torch(environment, watches):
    environment.delitem(sys.modules, 'torch')
    share_cores()
    assert len(watches) == 1
    assert {name: os.environ[name] for name in BRIEF_SPINNING} == BRIEF_SPINNING


@on_linux
@pytest.mark.parametrize('name', sorted({*LIBGOMP_VARIABLES, *LIBOMP_VARIABLES}))
def test_variables_of_the_user_take_precedence(name, environment, watches):
    environment.delitem(sys.modules, 'torch')
    environment.setenv(name, 'by_user')
    share_cores()
    assert bool(watches) == (name not in LIBGOMP_VARIABLES)
    assert os.environ[name] == 'by_user'
    assert bool({*BRIEF_SPINNING} & {*os.environ}) == (
        name not in LIBOMP_VARIABLES or name in BRIEF_SPINNING
    )
    assert f'{name}=by_user' in describe_threads(2)


@on_linux
def test_threads_beyond_the_cores_start_and_end():
    import torch

    torch.ones(2).sum()  # loads libgomp
    before, cores = len(os.listdir(THREAD_TASKS)), len(os.sched_getaffinity(0))
    with more_threads_than_cores(1):
        # The thread that holds the teams, and a team of each libgomp.
        assert len(os.listdir(THREAD_TASKS)) >= before + 1 + cores * len(loaded_libgomps())
    deadline = time.monotonic() + 10
    while len(os.listdir(THREAD_TASKS)) > before:
        assert time.monotonic() < deadline
        time.sleep(0.01)


@on_linux
def test_waiting_for_a_shared_core_is_counted():
    core = {min(os.sched_getaffinity(0))}
    loop = f'import os\nos.sched_setaffinity(0, {core})\nprint(flush=True)\nwhile True: pass'
    allowed, before = os.sched_getaffinity(0), seconds_waited()
    with subprocess.Popen([sys.executable, '-c', loop], stdout=subprocess.PIPE) as other:
        try:
            other.stdout.readline()
            os.sched_setaffinity(0, core)
            end = time.monotonic() + 0.5
            while time.monotonic() < end:
                pass
        finally:
            os.sched_setaffinity(0, allowed)
            other.kill()
    assert seconds_waited() - before > 0.05


@on_linux
def test_seconds_of_workers_are_read():
    loop = 'import time\nwhile time.process_time() < 0.5: pass\nprint(flush=True)\ninput()'
    pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with subprocess.Popen([sys.executable, '-c', loop], **pipes) as child:
        child.stdout.readline()
        assert read_worker_seconds()[str(child.pid)] >= 0.4
    assert str(child.pid) not in read_worker_seconds()
    assert not [*read_schedule(PROCESSES / str(child.pid) / 'task')]


@pytest.mark.parametrize(
    ('count', 'waited', 'workers', 'is_busy'),
    [
        (2, 0.05, {}, False),
        (2, 0.5, {}, True),
        (1, 0.5, {}, False),
        (2, 0.5, {'1': 0.3, '2': 0.2}, False),  # threads wait for this process's own workers
        (2, 1.0, {'1': 0.3, '2': 0.2}, True),
    ],
)
def test_watch_is_busy_if_threads_wait_for_cores(count, waited, workers, is_busy, monkeypatch):
    clock = iter((0.0, PERIOD))
    waits = iter((7.0, 7.0 + waited * PERIOD))
    # Worker 1 has run before the period; worker 2 starts within it.
    before = {'1': 9.0}
    after = {pid: before.get(pid, 0.0) + share * PERIOD for pid, share in workers.items()}
    worker_seconds = iter((before, after))
    monkeypatch.setattr(threads, 'read_worker_seconds', lambda: next(worker_seconds))
    monkeypatch.setattr(threads.time, 'perf_counter', lambda: next(clock))
    monkeypatch.setattr(threads.time, 'sleep', lambda seconds: None)
    monkeypatch.setattr(threads, 'seconds_waited', lambda: next(waits))
    monkeypatch.setattr(threads, 'count_torch_threads', lambda: count)
    assert Watch()._is_busy() == is_busy


def test_description_names_the_deciding_variable(environment):
    assert describe_threads(1) == 'torch computes with 1 thread.'
    assert "the runtime's own defaults" in describe_threads(4)
    environment.setenv('GOMP_SPINCOUNT', '3000')
    assert 'with 4 threads' in describe_threads(4)
    assert describe_threads(4).endswith(': GOMP_SPINCOUNT=3000.')
    environment.setattr(threading, 'enumerate', lambda: [Watch()])
    assert describe_threads(4).endswith('asleep while other programs need their cores.')


@on_linux
@pytest.mark.nightly
@pytest.mark.parametrize(
    ('imports', 'is_watching'),
    [('import vit_plugin, vit_plugin.models', 'False'), ('', 'True')],
)
def test_only_commands_start_the_watch(imports, is_watching, environment):
    code = f"""
import atexit, threading
atexit.register(lambda: print('watch of the cores' in [t.name for t in threading.enumerate()]))
{imports or 'from vit_plugin.__main__ import main; main(["zoo", "nothing-like-it"])'}
"""
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == is_watching, done
