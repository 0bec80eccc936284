"""The scope of a framework: import its data sets, and build in it, one thread at a time."""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from importlib import import_module
from importlib.util import find_spec
from threading import RLock
from typing import Any

from mmengine.registry import DefaultScope

_building = RLock()
if hasattr(os, 'register_at_fork'):
    # A forked child inherits the lock and the scope. If another thread were building, nothing in
    # the child would ever release the lock and restore the scope. So a fork waits until building
    # ends.
    os.register_at_fork(
        before=_building.acquire,
        after_in_parent=_building.release,
        after_in_child=_building.release,
    )


@contextmanager
def in_scope(scope: str | None) -> Iterator[None]:
    """Within this context, names without a prefix are those of a framework. None changes nothing.

    MMEngine has one default scope for all threads, and restores it when a context ends. A second
    thread that builds at the same time would lose its scope, and not find ``PackInputs``. So it
    waits.
    """
    with _building, DefaultScope.overwrite_default_scope(scope):
        yield


def is_installed(scope: Any) -> bool:
    """True if this is the name of a package that can be imported."""
    return isinstance(scope, str) and scope.isidentifier() and find_spec(scope) is not None


def import_data_sets(scope: str | None) -> None:
    """Import a framework's data sets, if installed, without their message about missing OneDL."""
    name = f'{scope}.datasets'
    if is_installed(scope) and find_spec(name):
        with redirect_stdout(io.StringIO()):
            import_module(name)
