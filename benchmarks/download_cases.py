"""The cases of ``benchmarks downloads``: URL, behavior of the server and expected outcome."""

import io
import os
import resource
import signal
import tempfile
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from unittest.mock import patch

import filelock
import numpy as np
import pytest
import torch

from benchmarks.rude_server import Server
from vit_plugin.errors import ConfigError
from vit_plugin.weights import open_checkpoint
from vit_plugin.weights.downloads import cached_path

STALL_TIMEOUT = 0.3  # seconds, for cases in which the server stalls
WEIGHTS = {'weight': np.random.default_rng(0).standard_normal((40, 500))}


def content() -> bytes:
    """The bytes of an .npz file of 160 kB with :data:`WEIGHTS`."""
    file = io.BytesIO()
    np.savez(file, **WEIGHTS)
    return file.getvalue()


@dataclass(frozen=True)
class Case:
    """A download, and what is expected of it.

    Attributes:
        path: the path of the URL: the server's behavior, a slash, and the file's name. Or a whole
            URL, in which SERVER stands for the server's address.
        message: a pattern of the error's message; None if the download succeeds.
        num_requests: the expected number of requests, if it matters.
        around: makes a context manager around the download from the server and the URL.
        timeout: time-out of the download in seconds.
    """

    path: str
    message: str | None = None
    num_requests: int | None = None
    around: Callable | None = None
    timeout: float = 5

    def __str__(self) -> str:
        name = self.path.replace('/B_16.npz', '').encode('ascii', 'backslashreplace').decode()
        return name[:60] + (f' ({self.around.__name__})' if self.around else '')


@contextmanager
def full_disk(server: Server, url: str):
    """No file may grow beyond 50 kB, as on a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@contextmanager
def folder_is_a_file(server: Server, url: str):
    cached_path(url).parents[1].mkdir(parents=True)
    cached_path(url).parent.touch()
    yield


@contextmanager
def folder_cannot_be_made(server: Server, url: str):
    with patch.object(torch.hub, 'get_dir', lambda: '/proc/none'):
        yield


@contextmanager
def cached_before(server: Server, url: str):
    cached_path(url).parent.mkdir(parents=True)
    cached_path(url).write_bytes(server.content)
    yield


@contextmanager
def cached_damaged(server: Server, url: str):
    """An earlier version had cached a truncated file.

    Reading it fails with advice to download it again. The download then replaces it.
    """
    cached_path(url).parent.mkdir(parents=True)
    cached_path(url).write_bytes(server.content[:9999])
    with pytest.raises(ConfigError, match='it may be damaged or cut short: download it again'):
        open_checkpoint(url)
    yield


@contextmanager
def after_a_kill(server: Server, url: str):
    """A killed process had fetched a part."""
    process = os.fork()
    if not process:
        open_checkpoint(url)
        os._exit(0)
    while not any(part.stat().st_size for part in cached_path(url).parent.glob('*.part.*')):
        time.sleep(0.01)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    yield


@contextmanager
def beside_another(server: Server, url: str):
    """Another process downloads it at the same time."""
    process = os.fork()
    if not process:
        try:
            open_checkpoint(url)
            os._exit(0)
        except ConfigError as error:
            Path(tempfile.gettempdir(), f'{os.getpid()}.message').write_text(str(error))
            os._exit(1)
    while not server.requests:
        time.sleep(0.01)
    message = None
    try:
        yield
    except ConfigError as error:
        message = str(error)
        raise
    finally:
        _, status = os.waitpid(process, 0)
        other = Path(tempfile.gettempdir(), f'{process}.message')
        other_message = other.read_text() if other.exists() else None
        other.unlink(missing_ok=True)
        assert bool(status) == bool(message)
        assert bool(other_message) == bool(message)


@contextmanager
def another_is_stopped(server: Server, url: str):
    """A process that holds the lock does nothing."""
    cached_path(url).parent.mkdir(parents=True)
    with filelock.FileLock(f'{cached_path(url)}.lock'):
        yield


def cases() -> list[Case]:
    """All cases. The behaviors of the server are the keys of a table in `rude_server`."""
    digest, file = sha256(content()).hexdigest(), 'B_16.npz'

    def behaviors(timeout: float = 5, **messages: str | None) -> list[Case]:
        # A keyword is the server's behavior, with _ for -. A leading underscore makes a status a
        # valid keyword. The value is the pattern of the message.
        return [
            Case(f'{name.strip("_").replace("_", "-")}/{file}', message, timeout=timeout)
            for name, message in messages.items()
        ]

    def right(name: str, message: str | None = None) -> Case:
        return Case(f'right/{name}', message)

    return [
        *behaviors(
            right=None,
            tagged=None,
            no_length=None,
            chunks=None,
            moved=None,
            gzip=None,
            length_word=None,
            length_minus=None,
            recovers=None,
            busy=None,
            busy_long=None,
        ),
        *behaviors(
            _204='status 204',
            _304='status 304',
            _401='status 401',
            _403='status 403',
            _410='status 410',
            _418='status 418',
            _429='status 429',
            _503='status 503',
            unasked_206='status 206',
        ),
        Case(f'404/{file}', 'status 404 Not Found.*check the URL', num_requests=1),
        Case(f'500/{file}', 'status 500', num_requests=3),
        *behaviors(
            STALL_TIMEOUT,
            silent='timed out',
            half_header='timed out',
            stalls='timed out',
            drip='only .* bytes came',
        ),
        # lengths and contents
        *behaviors(
            cut='cut short|IncompleteRead',
            cut_chunks='Incomplete|InvalidChunk|invalid literal',
            closes='closed connection',
            too_long='cut short|IncompleteRead',
            no_http='SSH-2.0-OpenSSH_9.6',
            resets='reset by peer',
            too_short='cannot be read',
            two_lengths='multiple unmatching values',
            empty='it is empty',
            cut_gzip='cannot be read',
            bad_gzip='decompressing',
            loop='Exceeded 10 redirects',
            to_file='file:///etc/passwd',
            to_nowhere='status 302',
            to_bad='Invalid',
            html='it is a web page',
            text='cannot be read',
            flipped='cannot be read',
        ),
        # the disk
        Case(f'right/{file}', 'cannot be saved .*too large', around=full_disk),
        Case(f'right/{file}', 'cannot be saved', around=folder_is_a_file),
        Case(f'right/{file}', 'cannot be saved', around=folder_cannot_be_made),
        Case(f'right/{file}', num_requests=0, around=cached_before),
        Case(f'right/{file}', num_requests=1, around=cached_damaged),
        # addresses
        right('get?name=x&file=B_16.npz&token=1'),
        right('Gewichte_für_ViT_日本.npz'),
        right('a%20b%2Fc%00.npz'),
        right('a b\\c:*.npz'),
        right(f'{"long" * 100}.npz'),
        right('x.npz?' + 'q' * 3000),
        right('\udcff.npz'),
        right('download?id=5'),
        Case('text/download?id=5', 'not read'),
        Case('http://me:secret@SERVER/password/B_16.npz'),
        Case(
            'http://me:wrong@SERVER/password/B_16.npz',
            r'http://127\S* cannot be downloaded \(status 401',
        ),
        Case('http://127.0.0.1:1/B_16.npz', 'Connection refused'),
        *(
            Case(address, 'cannot be downloaded')
            for address in (
                'http://',
                'http:///B_16.npz',
                'http://[::1/B_16.npz',
                'http://127.0.0.1:99999/B_16.npz',
                'https://a..b/B_16.npz',
                'http://no.such.host.invalid/x.npz',
                f'https://SERVER/right/{file}',
                'http://\u2603.\ud800/x.npz',
            )
        ),
        # hashes
        right(f'B_16-{digest[:8]}.npz'),
        right('B_16-20210928.npz'),
        right(f'{file}#sha256={digest}'),
        right(f'{file}#top'),
        right('B_16-deadbeef.npz', 'its sha256 is .* and not deadbeef'),
        right(f'{file}#sha256={"0" * 64}', 'its sha256 is'),
        right(f'{file}#sha256=12', 'must end in #sha256='),
        right(f'{file}#md5=0123', 'must end in #sha256='),
        # other processes
        Case(f'paced/{file}', num_requests=2, around=after_a_kill),
        Case(f'paced/{file}', num_requests=1, around=beside_another),
        Case(
            f'drip/{file}',
            'only .* bytes came|another process failed',
            num_requests=1,
            around=beside_another,
            timeout=STALL_TIMEOUT,
        ),
        Case(f'right/{file}', 'holds .*lock', num_requests=0, around=another_is_stopped),
    ]
