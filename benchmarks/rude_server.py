"""A web server that misbehaves, for tests of downloads; the first part of a path selects how."""

import base64
import gzip
import http.server
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

TAG = '"one"'


class Server(http.server.ThreadingHTTPServer):
    """Serves ``content`` at ``/<behavior>/<any name>``.

    Attributes:
        requests: the behavior and the header ``Range`` of each request.
        shutting_down: an event, set at the end so that stalled requests end too.
    """

    daemon_threads = True

    def __init__(self, content: bytes) -> None:
        super().__init__(('127.0.0.1', 0), Handler)
        self.content, self.requests, self.shutting_down = content, [], threading.Event()
        self.address = f'http://127.0.0.1:{self.server_address[1]}'

    def handle_error(self, *args) -> None:
        """A client that went away is not an error of the server's."""


@contextmanager
def serving(content: bytes) -> Iterator[Server]:
    """A running server of this content, within the context."""
    with Server(content) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        try:
            yield server
        finally:
            server.shutting_down.set()
            server.shutdown()


class Handler(http.server.BaseHTTPRequestHandler):
    """Handles a request by a function of :data:`BEHAVIORS`, which calls the methods below.

    Attributes:
        attempt: the number of earlier requests with the same behavior.
        content: the content that the server should send.
        half: the length of its first half.
    """

    protocol_version = 'HTTP/1.1'

    def do_GET(self) -> None:
        self.close_connection = True
        behavior = self.path.split('?')[0].split('/')[1]
        self.attempt = sum(name == behavior for name, _ in self.server.requests)
        self.server.requests.append((behavior, self.headers.get('Range')))
        self.content = self.server.content
        self.half = len(self.content) // 2
        BEHAVIORS[behavior](self)

    def send_head(self, status: int = 200, length: object = None, **headers: object) -> None:
        """The status and the headers. ``length`` is that of the body, None to leave it out."""
        self.send_response(status)
        if length is not None:
            self.send_header('Content-Length', str(length))
        for name, value in headers.items():
            self.send_header(name.replace('_', '-'), str(value))
        self.send_header('Connection', 'close')
        self.end_headers()

    def send_whole(self, content: bytes | None = None, **headers: object) -> None:
        content = self.content if content is None else content
        self.send_head(200, len(content), **headers)
        self.wfile.write(content)

    def send_range(self, **headers: object) -> None:
        """The requested range, or the whole file."""
        # The header is 'bytes=START-'.
        start = int((self.headers.get('Range') or 'bytes=0-')[6:-1])
        headers = headers or {'ETag': TAG}
        if not start:
            self.send_whole(**headers)
            return
        span = f'bytes {start}-{len(self.content) - 1}/{len(self.content)}'
        self.send_head(206, len(self.content) - start, **{'Content_Range': span, **headers})
        self.wfile.write(self.content[start:])

    def send_half(self, **headers: object) -> None:
        """The first half of the file, announced as all of it."""
        self.send_head(200, len(self.content), **headers)
        self.wfile.write(self.content[: self.half])

    def stall(self) -> None:
        """Send nothing more until the server shuts down."""
        self.wfile.flush()
        self.server.shutting_down.wait(20)

    def drip(self, content: bytes) -> None:
        """Send one byte at a time, slowly."""
        for i in range(len(content)):
            self.wfile.write(content[i : i + 1])
            if self.server.shutting_down.wait(0.02):
                break

    def reset(self) -> None:
        """Close the connection with RST: a linger time of 0 does so."""
        self.wfile.flush()
        time.sleep(0.05)  # give the client time to read
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
        self.connection.close()

    def send_chunk(self, content: bytes) -> None:
        self.wfile.write(b'%x\r\n%s\r\n' % (len(content), content))

    def redirect(self, place: str) -> None:
        self.send_head(302, 0, Location=place)

    def log_message(self, *args) -> None:
        pass


def once(
    first: Callable[[Handler], object],
    then: Callable[[Handler], object] = Handler.send_range,
    times: int = 1,
):
    """Behave in one way for the first requests, and in another afterward."""
    return lambda handler: (first if handler.attempt < times else then)(handler)


def steps(*actions: Callable[[Handler], object]) -> Callable[[Handler], None]:
    """Behave in several ways, one after the other."""

    def act(handler: Handler) -> None:
        for action in actions:
            action(handler)

    return act


def tagged_half(handler: Handler) -> None:
    handler.send_half(ETag=TAG)


def half_of_chunks(handler: Handler) -> None:
    """Chunked encoding that ends after the first half."""
    handler.send_head(Transfer_Encoding='chunked')
    handler.send_chunk(handler.content[: handler.half])


def all_chunks(handler: Handler) -> None:
    half_of_chunks(handler)
    handler.send_chunk(handler.content[handler.half :])
    handler.send_chunk(b'')


def with_password(handler: Handler) -> None:
    if handler.headers.get('Authorization') == 'Basic ' + base64.b64encode(b'me:secret').decode():
        handler.send_whole()
    else:
        handler.send_head(401, 0, WWW_Authenticate='Basic realm="x"')


def paced(handler: Handler) -> None:
    """The whole file in slow chunks, but a requested range at once."""
    if handler.headers.get('Range'):
        handler.send_range()
        return
    handler.send_head(200, len(handler.content), ETag=TAG)
    for i in range(0, len(handler.content), 10000):
        handler.wfile.write(handler.content[i : i + 10000])
        handler.server.shutting_down.wait(0.05)


def raw(content: bytes) -> Callable[[Handler], None]:
    """Send bytes without a status and headers."""
    return lambda handler: handler.wfile.write(content)


Behavior = Callable[[Handler], object]
HTML = b'\n<!DOCTYPE html><html><title>Log in</title></html>'
# By the first part of the path. Numbers are statuses.
BEHAVIORS: dict[str, Behavior] = {
    'right': Handler.send_whole,
    'tagged': Handler.send_range,
    **{
        str(status): lambda handler, status=status: handler.send_head(status, 0)
        for status in (204, 304, 401, 403, 404, 410, 418, 429, 500, 503)
    },
    'recovers': once(lambda handler: handler.send_head(503, 0), times=2),
    'busy': once(lambda handler: handler.send_head(429, 0, Retry_After=0)),
    'busy-long': once(lambda handler: handler.send_head(503, 0, Retry_After=10**9)),
    'unasked-206': lambda handler: handler.send_head(206, 0, Content_Range='bytes 5-9/10'),
    'silent': Handler.stall,
    'half-header': steps(raw(b'HTTP/1.1 200 OK\r\nContent-Le'), Handler.stall),
    'stalls': steps(Handler.send_half, Handler.stall),
    'drip': steps(
        lambda handler: handler.send_head(200, len(handler.content)),
        lambda handler: handler.drip(handler.content),
    ),
    'cut': Handler.send_half,
    'cut-chunks': half_of_chunks,
    'chunks': all_chunks,
    'closes': lambda handler: None,
    'resets': steps(tagged_half, Handler.reset),
    'no-http': raw(b'SSH-2.0-OpenSSH_9.6\r\n'),
    'too-long': lambda handler: (
        handler.send_head(200, len(handler.content) + 10),
        handler.wfile.write(handler.content),
    ),
    'too-short': lambda handler: (
        handler.send_head(200, len(handler.content) - 10),
        handler.wfile.write(handler.content),
    ),
    'length-word': lambda handler: (
        handler.send_head(200, 'abc'),
        handler.wfile.write(handler.content),
    ),
    'length-minus': lambda handler: (
        handler.send_head(200, -5),
        handler.wfile.write(handler.content),
    ),
    'two-lengths': lambda handler: (
        handler.send_head(200, 5, Content_length=len(handler.content)),
        handler.wfile.write(handler.content),
    ),
    'no-length': lambda handler: (handler.send_head(), handler.wfile.write(handler.content)),
    'empty': lambda handler: handler.send_head(200, 0),
    'moved': lambda handler: handler.redirect('/right/B_16.npz'),
    'loop': lambda handler: handler.redirect('/loop/B_16.npz'),
    'to-file': lambda handler: handler.redirect('file:///etc/passwd'),
    'to-nowhere': lambda handler: handler.send_head(302, 0),
    'to-bad': lambda handler: handler.redirect('http://[::1/x'),
    'gzip': lambda handler: handler.send_whole(
        gzip.compress(handler.content), Content_Encoding='gzip', ETag=TAG
    ),
    'bad-gzip': lambda handler: handler.send_whole(Content_Encoding='gzip'),
    'cut-gzip': lambda handler: handler.send_whole(
        gzip.compress(handler.content)[:-3000], Content_Encoding='gzip'
    ),
    'password': with_password,
    'html': lambda handler: handler.send_whole(HTML, Content_Type='text/html'),
    'text': lambda handler: handler.send_whole(b'quota exceeded'),
    'flipped': lambda handler: handler.send_whole(
        handler.content[:9000] + b'\xff\x00\xff' + handler.content[9003:]
    ),
    'paced': paced,
}
