"""Threads that build at once find their own framework."""

import multiprocessing
import os
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import pytest
from mmengine.registry import DefaultScope

from vit_plugin.config.scope import in_scope


def test_a_thread_keeps_its_scope():
    together, wrong = Barrier(4), []

    def build(number: int) -> None:
        together.wait()
        for _ in range(50):
            with in_scope(f'scope-{number}'):
                found = DefaultScope.get_current_instance().scope_name
                wrong.extend([found] * (found != f'scope-{number}'))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(build, range(4)))
    assert wrong == []


@pytest.mark.skipif(not hasattr(os, 'fork'), reason='needs fork')
@pytest.mark.filterwarnings('ignore:.*fork')  # of Python 3.12, that threads may hold locks
def test_a_child_is_forked_between_builds():
    """Its copy of the lock would be held forever, and its scope that of the other thread."""
    began, context = Event(), multiprocessing.get_context('fork')

    def build() -> None:
        with in_scope('other'):
            began.set()
            time.sleep(0.5)

    def child(found: multiprocessing.SimpleQueue) -> None:
        with in_scope(None):
            scope = DefaultScope.get_current_instance()
            found.put(scope and scope.scope_name)

    found = context.SimpleQueue()
    process = context.Process(target=child, args=(found,))
    with ThreadPoolExecutor(1) as pool:
        pool.submit(build)
        began.wait()
        process.start()
        process.join(100)
    hangs = process.is_alive()
    process.kill()
    assert not hangs
    assert found.get() is None
