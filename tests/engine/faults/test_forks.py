"""Processes that a run forks, while it listens to signals."""

import multiprocessing
import os
import signal
import time

import pytest

from vit_plugin.engine.faults.forks import keeping_from_forks

FORKS = multiprocessing.get_context('fork')


@pytest.fixture
def heard(monkeypatch) -> list[int]:
    """The signals that this process hears."""
    numbers: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: numbers.append(number))
    yield numbers
    signal.signal(signal.SIGTERM, before)


def test_a_fork_ends_whenever_the_signal_comes(heard):
    with keeping_from_forks([signal.SIGTERM]):
        for wait in (0, 0.0005, 0.002, 0.1):
            process = FORKS.Process(target=time.sleep, args=(60, ), daemon=True)
            process.start()
            time.sleep(wait)
            process.terminate()
            process.join(20)
            assert process.exitcode == -signal.SIGTERM
    assert heard == []


def make_pools() -> None:
    """As MMDetection's ``eval_map`` makes them for each validation. Without the context one in a few dozen stays."""
    for _ in range(60):
        pool = FORKS.Pool(4)
        pool.starmap(max, [(i, 1) for i in range(8)])
        pool.close()
        del pool


def test_pools_end(heard):
    with keeping_from_forks([signal.SIGTERM]):
        process = FORKS.Process(target=pools_that_listen)
        process.start()
        process.join(100)
        assert process.exitcode == 0
    process.kill()


def pools_that_listen() -> None:
    signal.signal(signal.SIGTERM, lambda number, frame: None)
    with keeping_from_forks([signal.SIGTERM]):
        make_pools()


def test_the_process_itself_goes_on_to_hear(heard):
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    with keeping_from_forks([signal.SIGTERM]):
        process = FORKS.Process(target=int)
        process.start()
        process.join(20)
        assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == blocked
        os.kill(os.getpid(), signal.SIGTERM)
    assert heard == [signal.SIGTERM]


def test_outside_forks_have_the_handlers(heard):
    with keeping_from_forks([signal.SIGTERM]):
        pass
    process = FORKS.Process(target=signal_is_handled)
    process.start()
    process.join(20)
    assert process.exitcode == 0


def signal_is_handled() -> None:
    assert callable(signal.getsignal(signal.SIGTERM))
