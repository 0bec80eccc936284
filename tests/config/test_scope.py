"""Threads that build at once find their own framework."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

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
