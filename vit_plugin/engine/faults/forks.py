"""Signals of a run, and the processes that it forks."""

import os
import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache

_own: set[int] = set()  # what the run of this process listens to
_masks = threading.local()


@contextmanager
def keeping_from_forks(signals: Iterable[int]) -> Iterator[None]:
    """Within this context forked processes have the default actions of these signals, and not this process's handlers.

    The hosts' metrics compute in pools of processes, which they end by SIGTERM. Python's handlers would take it and let
    them live. Python also loses a signal that comes while it forks. So the signals wait until the fork is done.
    """
    if hasattr(os, 'register_at_fork'):  # Windows forks no processes
        _guard_forks()
    _own.update(signals)
    try:
        yield
    finally:
        _own.difference_update(signals)


@cache
def _guard_forks() -> None:
    """Register the functions below, which cannot be taken back and do nothing outside the context."""
    os.register_at_fork(before=_before, after_in_parent=_unblock, after_in_child=_in_child)


def _before() -> None:
    _masks.before = signal.pthread_sigmask(signal.SIG_BLOCK, _own)


def _unblock() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _masks.before)


def _in_child() -> None:
    for number in _own:
        signal.signal(number, signal.SIG_DFL)
    _own.clear()
    _unblock()
