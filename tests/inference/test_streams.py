"""Images at URLs, up to a maximum size."""

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import cv2
import numpy as np
import pytest
from rejection import rejects

from vit_plugin.inference import streams
from vit_plugin.inference.inputs import find_inputs


class Quiet(SimpleHTTPRequestHandler):
    """A handler that does not log requests to stderr."""

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def server(tmp_path) -> Iterator[str]:
    """The address of a server for the files of the test."""
    with ThreadingHTTPServer(('127.0.0.1', 0), partial(Quiet, directory=str(tmp_path))) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f'http://127.0.0.1:{running.server_port}'
        running.shutdown()
        thread.join()


@pytest.fixture
def photo(tmp_path, server) -> str:
    """The URL of an image on the server, with a quoted space and a query."""
    cv2.imwrite(str(tmp_path / 'a photo.png'), np.full((8, 12, 3), 90, np.uint8))
    return f'{server}/a%20photo.png?size=1'


def test_images_at_urls_are_read(photo):
    (image,) = find_inputs([photo])
    assert image.relative_path == Path('a photo.png')
    assert image.read().tolist() == np.full((8, 12, 3), 90).tolist()


@pytest.mark.parametrize(
    ('name', 'words'),
    [('missing.png', '404'), ('not_an_image.png', 'not_an_image.png. cannot be read')],
)
def test_missing_and_unreadable_images_raise(tmp_path, server, name, words):
    (tmp_path / 'not_an_image.png').write_text('no image')
    with rejects(f'The image .*{words}'):
        find_inputs([f'{server}/{name}'])[0].read()


def test_downloads_above_the_maximum_size_raise(photo, monkeypatch):
    monkeypatch.setattr(streams, 'MAX_DOWNLOAD_BYTES', 20)  # rounded to 0 MiB in the message
    with rejects('has more than 0 MiB'):
        find_inputs([photo])[0].read()


def test_unreachable_servers_raise():
    with rejects(r'cannot be downloaded \(.*Connection refused\)\.$'):
        # No program listens on port 9, that of the obsolete protocol Discard.
        find_inputs(['http://127.0.0.1:9/a.png'])[0].read()
