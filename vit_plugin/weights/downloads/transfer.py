"""Transfer a file over HTTP. One call is one try."""

import http.client
import os
import re
import shutil
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from queue import Empty, Full, Queue
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from .bounds import GIB, Bounds
from .errors import FailedError, RefusedError
from .parts import Parts

if TYPE_CHECKING:  # importing requests changes warnings and loggers, so functions import it
    import requests

CHUNK = 1 << 20
REDIRECTS = 10
FOR_NOW = {408, 425, 429, 500, 502, 503, 504}  # the status codes of a server that may answer later


class _Feed:
    """Asks for an address in a thread of its own: the answer, then chunks of its body, then ``b''``.

    Neither the lookup of a name nor a header that comes byte by byte has a time-out in Python. Here the reader of the
    feed waits as long as it likes, and no longer.
    """

    def __init__(self, url: str, headers: dict[str, str], bounds: Bounds) -> None:
        self._items: Queue[Any] = Queue(maxsize=16)
        self._left = Event()
        timeout = (bounds.header + 1, max(bounds.header, bounds.silence) + 1)  # ends the thread, after the reader left
        Thread(target=self._ask, args=(url, headers, timeout), daemon=True).start()

    def next(self, seconds: float) -> Any:
        """The next item.

        Raises:
            FailedError: if there is none after so many seconds, or if the transfer fails.
            RefusedError: if it can only fail.
        """
        try:
            item = self._items.get(timeout=seconds)
        except Empty:
            raise FailedError(f'nothing came in {seconds:g} s') from None
        if isinstance(item, Exception):
            raise _explained(item) from item
        return item

    def leave(self) -> None:
        self._left.set()

    def _ask(self, url: str, headers: dict[str, str], timeout: tuple[float, float]) -> None:
        try:
            import requests
            with requests.Session() as session:
                session.max_redirects = REDIRECTS
                with session.get(url, headers=headers, stream=True, timeout=timeout) as answer:
                    going_on = self._put(answer)
                    while going_on:
                        chunk = answer.raw.read1(CHUNK, decode_content=True)
                        going_on = self._put(chunk) and bool(chunk)
        except Exception as error:  # noqa: BLE001  the reader of the feed raises it
            self._put(error)

    def _put(self, item: Any) -> bool:
        """Whether the reader is still there and has got the item, or will get it."""
        while not self._left.is_set():
            try:
                self._items.put(item, timeout=0.2)
            except Full:
                continue
            return True
        return False


def transfer(url: str, parts: Parts, bounds: Bounds) -> Path:
    """Try to fetch a file, or what is missing of it.

    Args:
        url: ``http(s)://``. Proxies, certificates and ``.netrc`` are as for ``requests``.
        parts: where its beginning is kept, and goes.
        bounds: what it may take.

    Returns:
        The path of the part, which is as long as the server says that the file is.

    Raises:
        FailedError: if another try may bring more.
        RefusedError: if not.
        OSError: if the disk does not take it.
    """
    parts.drop_what_has_no_version()
    begun, have = parts.kept(), parts.size()
    # Encoded content has no positions to go on from.
    headers = {'Accept-Encoding': 'identity', **({'Range': f'bytes={have}-'} if have else {})}
    feed = _Feed(url, headers, bounds)
    try:
        answer = feed.next(bounds.header)
        start, total = _span(answer, have, parts.drop)
        part = parts.of(answer.headers)
        if start and part != begun:
            parts.drop()
            raise FailedError('the file there has changed')
        parts.drop(but=part)
        limit = _limit(total, start, part.parent, bounds)
        with open(part, 'ab' if start else 'wb') as file, tqdm(
                desc=parts.path.name, initial=start, total=total, unit='B', unit_scale=True, disable=None) as bar:
            _receive(feed, file, bar, limit, bounds)
            file.flush()
            os.fsync(file.fileno())  # a machine that dies must not leave an empty file
    finally:
        feed.leave()
    size = part.stat().st_size
    if total is not None and size < total:
        raise FailedError(f'it was cut short, after {size} of {total} bytes')
    if not size:
        raise RefusedError('it is empty')
    return part


def _span(answer: 'requests.Response', have: int, drop: Callable[[], None]) -> tuple[int, int | None]:
    """Where the body begins in the file, and the size of the file, or None where it is not known."""
    status, headers = answer.status_code, answer.headers
    if status == 200:
        length = headers.get('Content-Length', '')
        known = length.isascii() and length.isdecimal() and 'Content-Encoding' not in headers
        return 0, int(length) if known else None
    if status == 206 and have:
        span = re.fullmatch(r'bytes (\d{1,18})-\d+/(\d{1,18})', headers.get('Content-Range', ''))
        if span and int(span[1]) == have:
            return have, int(span[2])
    if status in (206, 416):
        drop()
        raise FailedError(f'status {status} in place of the rest of the file')
    reason = f'status {status} {answer.reason or ""}'.strip()
    if status in FOR_NOW:
        wait = headers.get('Retry-After', '')
        raise FailedError(reason, float(wait[:6]) if wait.isascii() and wait.isdecimal() else 0)
    raise RefusedError(reason)


def _limit(total: int | None, start: int, folder: Path, bounds: Bounds) -> int:
    """The size at which the file is given up."""
    free = shutil.disk_usage(folder).free
    if total is None:
        return min(int(bounds.size), free // 2)
    if total > bounds.size:
        raise RefusedError(f'it has {_in_words(total)}, more than '
                           f'VIT_PLUGIN_DOWNLOAD_GIB={bounds.size / GIB:.3g} allows')
    if total - start > free:
        raise RefusedError(f'it has {_in_words(total)}, and {str(folder)!r} has room for {_in_words(free)}; TORCH_HOME '
                           'names another place')
    return total


def _in_words(size: int) -> str:
    return tqdm.format_sizeof(size, 'iB', 1024)


def _receive(feed: _Feed, file: Any, bar: tqdm, limit: int, bounds: Bounds) -> None:
    since, recent = monotonic(), 0
    while chunk := feed.next(bounds.silence):
        if file.tell() == 0 and re.match(rb'\s*<(!doctype\s+html|html)\b', chunk[:1000], re.IGNORECASE):
            raise RefusedError('it is a web page, as of a wrong address or a log-in')
        if file.tell() + len(chunk) > limit:
            raise RefusedError(f'it does not end after {_in_words(limit)}, which VIT_PLUGIN_DOWNLOAD_GIB and the free '
                               'space allow')
        file.write(chunk)
        bar.update(len(chunk))
        recent += len(chunk)
        passed = monotonic() - since
        if passed >= bounds.silence:
            if recent < bounds.slowest * passed:
                raise FailedError(f'only {recent} bytes came in {passed:.3g} s')
            since, recent = monotonic(), 0


def _explained(error: Exception) -> Exception:
    """The error of a transfer as one that says whether another try is of use."""
    import requests
    import urllib3
    causes: list[BaseException] = [error]
    while (inner := _cause(causes[-1])) and inner not in causes:
        causes.append(inner)
    if any(isinstance(cause, (http.client.IncompleteRead, urllib3.exceptions.InvalidChunkLength)) for cause in causes):
        return FailedError('it was cut short')
    root = next((cause for cause in causes if isinstance(cause, OSError) and cause.strerror), causes[-1])
    reason = getattr(root, 'strerror', None) or ' '.join(str(root).split()).rstrip('.') or type(root).__name__
    if type(root) is http.client.BadStatusLine:
        reason = f'{reason!r} is no answer of a web server'
    for_good = (requests.exceptions.InvalidURL, requests.exceptions.InvalidSchema, requests.exceptions.InvalidHeader,
                requests.exceptions.TooManyRedirects, urllib3.exceptions.LocationParseError,
                ssl.SSLCertVerificationError, UnicodeError)
    if any(isinstance(cause, for_good) for cause in causes) or (
            isinstance(root, socket.gaierror) and root.errno == socket.EAI_NONAME):
        return RefusedError(reason)
    return FailedError(reason)


def _cause(error: BaseException) -> BaseException | None:
    inside = [getattr(error, 'reason', None), *error.args, error.__cause__, error.__context__]
    return next((cause for cause in inside if isinstance(cause, BaseException)), None)
