"""Download one file over HTTP, with retries, a minimum speed and checks of the response."""

import os
import re
from hashlib import sha256
from http.client import HTTPException
from pathlib import Path
from time import monotonic
from typing import Any

from mmengine.logging import print_log
from tqdm import tqdm

from vit_plugin.errors import ConfigError, first_line

DOWNLOAD_TIMEOUT = 30.0  # seconds without a response, or below MIN_SPEED
MIN_SPEED = 1024  # bytes per second
RETRIES = 6  # for failed connections and busy servers: about a minute
# urllib3 waits RETRY_PAUSE * 2 ** (n - 1) seconds before retry n, and 0 before the first.
RETRY_PAUSE = 1.0
DOWNLOAD_CHUNK = 1 << 20  # bytes


class TransferError(Exception):
    """The server does not send a complete file. The message is the reason in a few words."""


def transfer(url: str, part: Path) -> str:
    """Write the content of a URL to a file.

    Returns:
        The file's SHA-256.

    Raises:
        TransferError: if the server does not send a complete file. A partial file may remain.
        ConfigError: if the environment has an invalid timeout.
    """
    import requests  # imported late, since it changes warnings and loggers
    from requests.adapters import HTTPAdapter
    from urllib3.exceptions import HTTPError

    timeout = _read_timeout()
    retry = _logged_retry_class()(
        RETRIES,
        backoff_factor=RETRY_PAUSE,
        status_forcelist=(408, 425, 429, 500, 502, 503, 504),
        raise_on_status=False,
        # Otherwise, a server could ask for a wait of years.
        respect_retry_after_header=False,
    )
    try:
        with requests.Session() as session:
            for scheme in ('http://', 'https://'):
                session.mount(scheme, HTTPAdapter(max_retries=retry))
            session.max_redirects = 10
            with session.get(
                url, headers={'Accept-Encoding': 'identity'}, stream=True, timeout=timeout
            ) as response:
                if response.status_code != 200:
                    raise requests.HTTPError(
                        f'status {response.status_code} {response.reason or ""}'.strip()
                    )
                return _receive(response, part, timeout)
    except (requests.RequestException, HTTPError, HTTPException) as error:
        raise TransferError(_reason(error)) from error


def _logged_retry_class() -> type:
    """A subclass of urllib3's ``Retry`` that logs the first retry."""
    from urllib3.util import Retry

    class LoggedRetry(Retry):
        def increment(self, *args: Any, **kwargs: Any) -> Any:
            after = super().increment(*args, **kwargs)
            if not self.history:
                error = kwargs.get('error')
                reason = _reason(error) if error else f'status {after.history[-1].status}'
                print_log(f'{reason}: trying again, for up to a minute.', 'current')
            return after

    return LoggedRetry


def _receive(response: Any, part: Path, timeout: float) -> str:
    """Write the body of a response to a file, and return its SHA-256.

    Raises:
        RequestException: if it is empty, cut short or a web page, or slower than ``MIN_SPEED``
            during ``timeout`` seconds.
    """
    import requests

    length = response.headers.get('Content-Length', '')
    is_stated = length.isascii() and length.isdecimal()
    is_encoded = 'Content-Encoding' in response.headers  # then it is not the length of the file
    total, digest = int(length) if is_stated and not is_encoded else None, sha256()
    window_start, window_bytes = monotonic(), 0
    with (
        open(part, 'wb') as file,
        tqdm(desc=part.name, total=total, unit='B', unit_scale=True, disable=None) as bar,
    ):
        while chunk := response.raw.read1(DOWNLOAD_CHUNK, decode_content=True):
            if file.tell() == 0 and re.match(
                rb'\s*<(!doctype\s+html|html)\b', chunk[:1000], re.IGNORECASE
            ):
                raise requests.HTTPError('it is a web page, such as a log-in or an error page')
            file.write(chunk)
            digest.update(chunk)
            bar.update(len(chunk))
            window_bytes += len(chunk)
            if (passed := monotonic() - window_start) >= timeout:
                if window_bytes < MIN_SPEED * passed:
                    raise requests.Timeout(f'only {window_bytes} bytes came in {passed:.3g} s')
                window_start, window_bytes = monotonic(), 0
        if not file.tell():
            raise requests.HTTPError('it is empty')
        if total is not None and file.tell() < total:
            raise requests.HTTPError(f'it was cut short, after {file.tell()} of {total} bytes')
        file.flush()
        os.fsync(file.fileno())  # a crash must not leave an empty file
    return digest.hexdigest()


def _read_timeout() -> float:
    """The timeout in seconds: ``VIT_PLUGIN_DOWNLOAD_SECONDS``, or ``DOWNLOAD_TIMEOUT``."""
    text = os.environ.get('VIT_PLUGIN_DOWNLOAD_SECONDS', str(DOWNLOAD_TIMEOUT))
    if not re.fullmatch(r'\d{1,9}(\.\d{1,9})?', text) or not float(text):
        raise ConfigError(
            f'The environment variable VIT_PLUGIN_DOWNLOAD_SECONDS={text!r} must be a number '
            'above 0; correct it, or unset it.'
        )
    return float(text)


def _reason(error: BaseException) -> str:
    """The message of the original error, instead of those that libraries raised from it."""
    while inner := error.__cause__ or error.__context__:
        error = inner
    return getattr(error, 'strerror', None) or first_line(error)
