"""Within :func:`closed`, what a stranger's config names runs no code and opens nothing.

:mod:`~vit_plugin.untrusted.admission` reads such a config before anything is built from it, and
admits what is registered. A registered class may still take any of its strings for a path or a URL.
These arguments have too many names for a list, and each version of a framework adds some. So the
few functions of Python and MMEngine that all of them open with are closed while such a class is
built or asked, whatever its argument is called.

They are replaced as long as some thread is inside, and a replaced function refuses only in those
threads, which a context variable knows. An audit hook (``sys.addaudithook``) would see more, such
as what an import reads or a library in C opens, but it could never be taken back, and would have to
know all that is harmless. The campaign has one, to see that nothing gets past this.
"""

import builtins
import io
import os
import site
import socket
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import mmengine.config
import torch
from mmengine.fileio.handlers import PickleHandler, YamlHandler
from mmengine.registry import registry

from vit_plugin.errors import ConfigError

REMEDY = (
    'if you trust it, give its config with --config FILE, or to begin a training with it --arch'
)
# Python's own files and those of installed packages, which an import may read.
PLACES = [
    sysconfig.get_path('stdlib'),
    sysconfig.get_path('platstdlib'),
    *site.getsitepackages(),
    site.getusersitepackages(),
    str(Path(__file__).parents[1]),
]
INSTALLED = tuple(os.path.realpath(path) + os.sep for path in PLACES)


# What importlib.metadata reads of packages wherever they are installed, such as in a clone.
METADATA = ('entry_points.txt', 'METADATA', 'PKG-INFO', 'RECORD', 'top_level.txt')


class Within(NamedTuple):
    """Functions that are closed in a thread."""

    origin: str  # of the config
    files: bool


_within: ContextVar[Within | None] = ContextVar('within', default=None)
_lock = Lock()
_inside: list[object] = []  # a token for each context, of all threads
_opened: list[tuple[Any, str, Any]] = []  # what was replaced


@contextmanager
def closed(origin: str | None, files: bool = True) -> Iterator[None]:
    """Refuse what a config could run or open: code by its path, pickles, YAML, the network, files.

    Args:
        origin: where the config comes from, for the sentence. None closes nothing, for a config
            that a person gives.
        files: whether files are closed too. A test reads those of its data set.

    Raises:
        ConfigError: from inside, where the config would open something.
    """
    if origin is None:
        yield
        return
    with _lock:
        if not _inside:
            _replace()
        token = _within.set(Within(origin, files))
        _inside.append(token)
    try:
        yield
    finally:
        _within.reset(token)
        with _lock:
            _inside.remove(token)
            if not _inside:
                _put_back()


@contextmanager
def files_closed() -> Iterator[None]:
    """Inside of :func:`closed`, close files too; elsewhere nothing."""
    within = _within.get()
    with closed(within and within.origin):
        yield


def _replace() -> None:
    for owner, name, what in DOORS:
        own = vars(owner).get(name)  # None where it is inherited
        _opened.append((owner, name, own))
        guarded = _guarded(getattr(owner, name), what)
        setattr(owner, name, staticmethod(guarded) if isinstance(own, staticmethod) else guarded)


def _put_back() -> None:
    while _opened:
        owner, name, own = _opened.pop()
        if own is None:
            delattr(owner, name)
        else:
            setattr(owner, name, own)


def _guarded(theirs: Callable[..., Any], what: Callable[..., str | None]) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:
        within = _within.get()
        if within is not None and (found := what(within, *args, **kwargs)):
            raise ConfigError(
                f'The config in {within.origin!r} names a part that would {found}, and '
                f'no code is run and nothing opened that a checkpoint names; {REMEDY}.'
            )
        return theirs(*args, **kwargs)

    return function


def _file(within: Within, file: Any, *args: Any, **kwargs: Any) -> str | None:
    if not within.files or isinstance(file, int) or _is_installed(file):
        return None
    return f'open {os.fspath(file)!r}'


def _is_installed(file: Any) -> bool:
    path = Path(os.path.realpath(os.fsdecode(file)))
    is_metadata = path.parent.suffix in ('.egg-info', '.dist-info') and path.name in METADATA
    return is_metadata or str(path).startswith(INSTALLED)


def _connect(within: Within, self: socket.socket, address: Any) -> str | None:
    # The workers of a data loader use another family.
    internet = self.family in (socket.AF_INET, socket.AF_INET6)
    return f'connect to {address[0]}' if internet else None


def _load(within: Within, *args: Any, weights_only: bool = False, **kwargs: Any) -> str | None:
    return None if weights_only else 'unpickle a file'


def _always(what: str) -> Callable[..., str]:
    return lambda within, name, *args, **kwargs: what.format(name)


# Where they open, and what is said of the arguments; None lets them.
DOORS: tuple[tuple[Any, str, Callable[..., str | None]], ...] = (
    (registry, 'get_object_from_string', _always('import {!r} by its path')),
    (mmengine.config.Config, 'fromfile', _always('run the config {!r}')),
    (torch, 'load', _load),
    (PickleHandler, 'load_from_fileobj', _always('unpickle a file')),
    (YamlHandler, 'load_from_fileobj', _always('read a file of YAML')),
    (socket, 'getaddrinfo', _always('connect to {}')),
    (socket.socket, 'connect', _connect),
    (builtins, 'open', _file),
    (io, 'open', _file),
)
