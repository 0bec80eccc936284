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


def test_urls_are_read_up_to_the_maximum_size(tmp_path, server, monkeypatch):
    cv2.imwrite(str(tmp_path / 'a photo.png'), np.full((8, 12, 3), 90, np.uint8))
    (tmp_path / 'no.png').write_text('no image')
    (image,) = find_inputs([f'{server}/a%20photo.png?size=1'])
    assert image.relative_path == Path('a photo.png')
    assert image.read().tolist() == np.full((8, 12, 3), 90).tolist()
    for name, words in (('none.png', '404'), ('no.png', 'no.png. cannot be read')):
        with rejects(f'The image .*{words}'):
            find_inputs([f'{server}/{name}'])[0].read()
    monkeypatch.setattr(streams, 'MAX_DOWNLOAD_BYTES', 20)
    with rejects('has more than 0 MiB'):
        image.read()


def test_unreachable_servers_raise():
    with rejects(r'cannot be downloaded \(.*Connection refused\)\.$'):
        find_inputs(['http://127.0.0.1:9/a.png'])[0].read()
