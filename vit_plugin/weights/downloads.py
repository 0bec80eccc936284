"""Weights from URLs, downloaded once per machine. Only valid files are kept.

A file is valid if it is complete, has the expected hash and can be read.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from urllib.parse import parse_qsl, urldefrag, urlsplit

import torch
from filelock import FileLock, Timeout
from mmengine.logging import print_log

from vit_plugin.errors import ConfigError

from .http_transfer import TransferError, transfer
from .reading.files import DamagedError, check_readable

KNOWN_SUFFIXES = ('.npz', '.safetensors', '.pth', '.pt', '.pkl', '.bin', '.ckpt', '.tar')
LOCK_TIMEOUT = 3600.0  # seconds for another process that fetches the same file


def download(url: str) -> Path:
    """The file at a URL, from the cache if possible.

    The cache is ``checkpoints/<hash of the URL>/`` in the folder of ``torch.hub`` (``TORCH_HOME``).
    One process of a machine downloads, and the others wait for it.

    Args:
        url: ``http(s)://``, with the wanted hash or its beginning as ``#sha256=<8 to 64 digits>``
            if there is one. A name that ends in ``-<8 to 64 digits>`` names its hash too, as in
            torch's and OpenMMLab's model zoos.

    Raises:
        ConfigError: if the file cannot be downloaded, kept or read. It is not kept then.
    """
    shown = _shown(url)
    try:
        path = cached_path(url)
        pinned = _pinned_hash(url, path.name)
        if not path.exists():  # files appear atomically, so this needs no lock
            path.parent.mkdir(parents=True, exist_ok=True)
            with _lock(path, shown):
                if not path.exists():
                    _fetch(url, path, pinned)
        return path
    except ConfigError:
        raise
    except OSError as error:
        raise ConfigError(
            f'The checkpoint {shown} cannot be saved in {str(_cache())!r} '
            f'({error.strerror or error}); free some space, or name another folder with '
            'TORCH_HOME.'
        ) from error
    except ValueError as error:
        raise ConfigError(
            f'The checkpoint {shown} cannot be downloaded ({error}); correct the URL.'
        ) from error


@contextmanager
def removed_if_damaged(path: Path, source: str) -> Iterator[None]:
    """Remove a downloaded file that proves damaged in this context, to download it again.

    Args:
        path: the file that is read.
        source: its source. A path given by the user is never removed, not even in the cache.
    """
    try:
        yield
    except DamagedError:
        if '://' in source and _cache() in path.parents:
            path.unlink(missing_ok=True)
        raise


def cached_path(url: str) -> Path:
    """The path of a URL's file in the cache, with the suffix that selects its reader."""
    parts = urlsplit(url)
    names = [Path(parts.path).name, *(Path(value).name for _, value in parse_qsl(parts.query))]
    name = next((name for name in names if name.lower().endswith(KNOWN_SUFFIXES)), names[0])
    name = re.sub(r'[^\w.+=@%-]', '_', name.lstrip('.'))
    while len(name.encode()) > 200:  # so that added suffixes fit into the 255 bytes of file systems
        name = name[1:]
    # Hubs use the same file name for all models.
    folder = sha256(url.encode(errors='backslashreplace')).hexdigest()[:12]
    return Path(_cache(), folder, name or 'weights')


def _cache() -> Path:
    """The folder of all downloads."""
    return Path(torch.hub.get_dir(), 'checkpoints')


def _pinned_hash(url: str, name: str) -> str:
    """The beginning of the SHA-256 that a URL or file name states, in lower case, or ''."""
    algorithm, separator, digits = urldefrag(url).fragment.partition('=')
    if separator:
        if algorithm != 'sha256' or not re.fullmatch('[0-9a-fA-F]{8,64}', digits):
            raise ConfigError(
                f'The checkpoint {_shown(url)} must end in #sha256= and 8 to 64 hexadecimal '
                'digits, or have nothing after #.'
            )
        return digits.lower()
    # A date, such as -20230826.pth, is not a hash.
    match = re.search(r'-(?!(?:19|20)\d\d[01]\d[0-3]\d\.)([0-9a-f]{8,64})\.\w+$', name)
    return match[1] if match else ''


@contextmanager
def _lock(path: Path, shown: str) -> Iterator[None]:
    """Hold the lock of a download, if necessary after waiting for another process to end its own.

    Args:
        path: the file to download.
        shown: its URL, for messages.

    Raises:
        ConfigError: if the other process takes longer than ``LOCK_TIMEOUT``, or has failed.
    """
    lock = FileLock(path.with_name(f'{path.name}.lock'))
    try:
        lock.acquire(blocking=False)
    except Timeout:
        try:
            lock.acquire(timeout=LOCK_TIMEOUT)
        except Timeout:
            raise ConfigError(
                f'The checkpoint {shown} has been downloaded by another process for '
                f'{LOCK_TIMEOUT:.3g} s, which holds {lock.lock_file}; end that process, and try '
                'again.'
            ) from None
        if not path.exists():  # retrying in every process would take too long
            lock.release()
            raise ConfigError(
                f'The checkpoint {shown} cannot be downloaded (another process failed to, and '
                'says why); try again, or download it by hand and give its path.'
            ) from None
    try:
        yield
    finally:
        lock.release()


def _fetch(url: str, path: Path, pinned: str) -> None:
    """Download a file next to its path, check its hash and content, and move it there.

    Args:
        url: its URL.
        path: its path in the cache.
        pinned: the beginning of the expected SHA-256, or ''.

    Raises:
        ConfigError: if it cannot be downloaded or read, or has another hash.
    """
    # Keep the suffix, which selects the reader.
    part = path.with_name(f'{path.stem}.part{path.suffix}')
    print_log(f'Downloading {_shown(url)} to {path}', 'current')
    try:
        digest = transfer(urldefrag(url).url, part)
        if not digest.startswith(pinned):
            raise ConfigError(
                f'The checkpoint {_shown(url)} cannot be downloaded: its sha256 is {digest}, and '
                f'not {pinned}; if that is the file that you want, write #sha256= and this after '
                'the URL.'
            )
        check_readable(part)
        os.replace(part, path)
    except TransferError as error:
        raise ConfigError(
            f'The checkpoint {_shown(url)} cannot be downloaded ({error}); check the URL and the '
            'network, or download it by hand and give its path.'
        ) from error
    except ConfigError as error:  # name the URL, not the temporary file
        raise ConfigError(str(error).replace(repr(str(part)), _shown(url))) from error
    finally:
        part.unlink(missing_ok=True)


def _shown(url: str) -> str:
    """The URL without the password, in characters that can be printed."""
    return re.sub(r'(?<=://)[^/@]*@', '', url).encode(errors='backslashreplace').decode()
