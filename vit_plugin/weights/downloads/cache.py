"""Keep what was downloaded: a file is in the cache when it is whole, has its hash and can be read."""

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from time import monotonic
from urllib.parse import parse_qsl, urldefrag, urlsplit

import torch
from filelock import FileLock, Timeout
from mmengine.logging import print_log

from vit_plugin.errors import ConfigError

from ..files import DamagedError, check_readable
from .bounds import Bounds
from .errors import FailedError, RefusedError
from .parts import Parts
from .transfer import transfer

KNOWN_SUFFIXES = ('.npz', '.safetensors', '.pth', '.pt', '.pkl', '.bin', '.ckpt', '.tar')
KEPT = 7 * 24 * 3600  # seconds that the beginning of a file is kept for another try
POLL = 0.1  # seconds


def download(url: str, bounds: Bounds | None = None) -> Path:
    """The file at an address, from the cache where it is there.

    The cache is ``checkpoints/<hash of the address>/`` in the folder of ``torch.hub`` (``TORCH_HOME``). A file gets
    there in one step, when it is whole. Of those who want it on a host, one fetches it and the others wait as long as
    it goes on. If it fails they raise the same error. The beginning of a file whose version is known is kept for seven
    days, and the next try goes on from it, also that of another process.

    Args:
        url: ``http(s)://``, with the wanted hash or its beginning as ``#sha256=<8 to 64 digits>`` if there is one. A
            name that ends in ``-<8 to 64 digits>`` names its hash too, as in torch's and OpenMMLab's model zoos.
        bounds: what it may take, see :meth:`Bounds.of_environment`.

    Raises:
        ConfigError: if the file cannot be fetched, kept or read. It is not kept then.
    """
    bounds = bounds or Bounds.of_environment()
    shown = _shown(url)
    try:
        path = place(url)
        wanted = _wanted_hash(url, path.name)
        if path.exists():  # needs no lock: files arrive in one step
            return path
        path.parent.mkdir(parents=True, exist_ok=True)
        with _turn(path, shown, bounds):
            if not path.exists():
                _fetch(url, path, wanted, bounds)
        return path
    except ConfigError:
        raise
    except OSError as error:
        raise ConfigError(f'The checkpoint {shown} cannot be kept in {str(cache())!r} ({error.strerror or error}); '
                          'make room there, or name another folder with TORCH_HOME.') from error
    except ValueError as error:
        raise ConfigError(f'The checkpoint {shown} cannot be fetched ({error}); correct the address.') from error


@contextmanager
def kept_if_whole(path: Path, source: str) -> Iterator[None]:
    """Within this context, remove a downloaded file that turns out to be damaged, so that it is fetched anew.

    Args:
        path: the file that is read.
        source: where it is from. A path that a user gives is left alone, also one in the cache.
    """
    try:
        yield
    except DamagedError:
        if '://' in source and cache() in path.parents:
            path.unlink(missing_ok=True)
        raise


def cache() -> Path:
    """The folder of downloads, which is torch hub's."""
    return Path(torch.hub.get_dir(), 'checkpoints')


def place(url: str) -> Path:
    """The path in the cache. Its suffix tells the reader the kind of the file."""
    parts = urlsplit(url)
    names = [Path(parts.path).name, *(Path(value).name for _, value in parse_qsl(parts.query))]
    name = next((name for name in names if name.lower().endswith(KNOWN_SUFFIXES)), names[0])
    name = re.sub(r'[^\w.+=@%-]', '_', name.lstrip('.'))
    while len(name.encode()) > 200:  # with what is added to it, below the 255 bytes of file systems
        name = name[1:]
    folder = sha256(url.encode(errors='backslashreplace')).hexdigest()[:12]  # hubs name all their files alike
    return Path(cache(), folder, name or 'weights')


def _wanted_hash(url: str, name: str) -> str | None:
    kind, given, digits = urldefrag(url).fragment.partition('=')
    if given:
        if kind != 'sha256' or not re.fullmatch('[0-9a-fA-F]{8,64}', digits):
            raise ConfigError(f'The checkpoint {_shown(url)} must end in #sha256= and 8 to 64 hexadecimal digits, or '
                              'have nothing after #.')
        return digits.lower()
    named = re.search(r'-([0-9a-f]{8,64})\.\w+$', name)
    if named is None or re.fullmatch(r'(19|20)\d\d[01]\d[0-3]\d', named[1]):  # a date
        return None
    return named[1]


@contextmanager
def _turn(path: Path, shown: str, bounds: Bounds) -> Iterator[None]:
    """Wait until no other process fetches the file, as long as there are signs that it goes on.

    Raises:
        ConfigError: if there are none for long, or what the other process raised.
    """
    lock, note = FileLock(path.with_name(f'{path.name}.lock')), path.with_name(f'{path.name}.failed')
    before, signs, since = _time_of(note), None, monotonic()
    while True:
        try:
            lock.acquire(timeout=POLL)
            break
        except Timeout:
            now = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in path.parent.glob('*.part-*')]
            if now != signs:
                signs, since = now, monotonic()
            if monotonic() - since > bounds.still:
                raise ConfigError(f'The checkpoint {shown} is fetched by another process, of which there was no sign '
                                  f'for {bounds.still:.3g} s (it holds {lock.lock_file}); end that process, and try '
                                  'again.') from None
    try:
        if _time_of(note) != before and note.exists():
            raise ConfigError(note.read_text())
        yield
        note.unlink(missing_ok=True)
    except ConfigError as error:
        if _time_of(note) == before:
            note.write_text(str(error))
        raise
    finally:
        lock.release()


def _time_of(note: Path) -> int | None:
    try:
        return note.stat().st_mtime_ns
    except FileNotFoundError:
        return None


def _fetch(url: str, path: Path, wanted: str | None, bounds: Bounds) -> None:
    _sweep()
    parts = Parts(path)
    print_log(f'Fetches {_shown(url)} to {path}', 'current')
    try:
        part = _patiently(url, parts, bounds)
        _check_hash(part, wanted)
        check_readable(part)
    except FailedError as error:  # its beginning is kept
        parts.drop_what_has_no_version()
        raise ConfigError(f'The checkpoint {_shown(url)} cannot be fetched ({error}), after {bounds.tries} tries in a '
                          'row; try again later, or fetch it by hand and give its path.') from error
    except RefusedError as error:
        parts.drop()
        raise ConfigError(f'The checkpoint {_shown(url)} cannot be fetched ({error}); check the address, or fetch it '
                          'by hand and give its path.') from error
    except ConfigError as error:
        parts.drop()
        raise ConfigError(str(error).replace(repr(str(part)), _shown(url))) from error
    except Exception:
        parts.drop()
        raise
    os.replace(part, path)


def _patiently(url: str, parts: Parts, bounds: Bounds) -> Path:
    """Try until the file is there, or several tries in a row brought nothing."""
    failed, best = 0, parts.size()
    while True:
        try:
            return transfer(urldefrag(url).url, parts, bounds)
        except FailedError as error:
            failed += 1
            if parts.size() >= best + bounds.gain:
                failed, best = 1, parts.size()
            if failed >= bounds.tries:
                raise
            time.sleep(max(min(error.wait, bounds.longest_wait), bounds.pause * 2**(failed - 1)))


def _check_hash(part: Path, wanted: str | None) -> None:
    if wanted is None:
        return
    digest = sha256()
    with open(part, 'rb') as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    if not digest.hexdigest().startswith(wanted):
        raise RefusedError(f'its sha256 is {digest.hexdigest()}, and not {wanted}: if that is the file that you want, '
                           'write #sha256= and this number behind the address')


def _sweep() -> None:
    """Remove what was begun and not gone on with, and notes, when they are old."""
    for pattern in ('*.part-*', '*.partial', '*.failed'):  # torch.hub's parts too, which earlier versions left
        for path in cache().glob(f'{"[0-9a-f]" * 12}/{pattern}'):
            try:
                if time.time() - path.stat().st_mtime > KEPT:
                    path.unlink()
            except OSError:  # another process was faster, or the file is somebody else's
                continue


def _shown(url: str) -> str:
    """The address without the password, in characters that can be printed."""
    return re.sub(r'(?<=://)[^/@]*@', '', url).encode(errors='backslashreplace').decode()
