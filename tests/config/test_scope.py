"""Concurrent threads build within their own scope."""

import multiprocessing
import os
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import pytest
from mmengine.registry import DefaultScope

from vit_plugin.config.scope import import_data_sets, in_scope


def test_a_thread_keeps_its_scope():
    barrier, wrong = Barrier(4), []

    def build(number: int) -> None:
        barrier.wait()
        for _ in range(50):
            with in_scope(f'scope-{number}'):
                scope = DefaultScope.get_current_instance().scope_name
                if scope != f'scope-{number}':
                    wrong.append(scope)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(build, range(4)))
    assert wrong == []


@pytest.mark.skipif(not hasattr(os, 'fork'), reason='needs fork')
@pytest.mark.filterwarnings('ignore:.*fork')  # Python 3.12 warns that threads may hold locks
def test_a_child_is_forked_between_builds():
    """Else its copy of the lock would be held forever, and its scope be that of another thread."""
    began, context = Event(), multiprocessing.get_context('fork')

    def build() -> None:
        with in_scope('other'):
            began.set()
            time.sleep(0.5)

    def child(scopes: multiprocessing.SimpleQueue) -> None:
        with in_scope(None):
            scope = DefaultScope.get_current_instance()
            scopes.put(scope and scope.scope_name)

    scopes = context.SimpleQueue()
    process = context.Process(target=child, args=(scopes,))
    with ThreadPoolExecutor(1) as pool:
        pool.submit(build)
        began.wait()
        process.start()
        process.join(100)
    hangs = process.is_alive()
    process.kill()
    assert not hangs
    assert scopes.get() is None


@pytest.mark.parametrize('scope', [None, 3, '', 'none', 'none.such'])
def test_data_sets_of_an_unknown_scope_are_left_to_the_check_of_the_config(scope):
    import_data_sets(scope)
