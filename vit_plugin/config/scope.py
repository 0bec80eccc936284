"""Build in the scope of a framework, one thread at a time."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

from mmengine.registry import DefaultScope

_building = RLock()


@contextmanager
def in_scope(scope: str | None) -> Iterator[None]:
    """Within this context, names without a prefix are a framework's; with None, those of before.

    MMEngine has one default scope for all threads, and puts back what it was when a context ends. A
    thread that builds at the same time would lose its own, and find no ``PackInputs``. So it waits.
    """
    with _building, DefaultScope.overwrite_default_scope(scope):
        yield
