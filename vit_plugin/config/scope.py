"""The scope of a framework: import its data sets, and build in it, one thread at a time."""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from importlib import import_module
from importlib.util import find_spec
from threading import RLock

from mmengine.registry import DefaultScope

_building = RLock()
if hasattr(os, 'register_at_fork'):
    # A child has the lock and the scope as they are. If another thread were building, nobody there
    # would ever release the one and put back the other. So a fork waits for its end.
    os.register_at_fork(
        before=_building.acquire,
        after_in_parent=_building.release,
        after_in_child=_building.release,
    )


@contextmanager
def in_scope(scope: str | None) -> Iterator[None]:
    """Within this context, names without a prefix are a framework's; with None, those of before.

    MMEngine has one default scope for all threads, and puts back what it was when a context ends. A
    thread that builds at the same time would lose its own, and find no ``PackInputs``. So it waits.
    """
    with _building, DefaultScope.overwrite_default_scope(scope):
        yield


def import_data_sets(scope: str | None) -> None:
    """Import a framework's data sets without their line that OneDL could not be imported."""
    name = f'{scope}.datasets'
    if scope and find_spec(scope) and find_spec(name):
        with redirect_stdout(io.StringIO()):
            import_module(name)
