"""Images at URLs, within their bounds."""

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


def test_a_url_is_read_within_its_bounds(tmp_path, server, monkeypatch):
    cv2.imwrite(str(tmp_path / 'a photo.png'), np.full((8, 12, 3), 90, np.uint8))
    (tmp_path / 'no.png').write_text('no image')
    (one,) = find_inputs([f'{server}/a%20photo.png?size=1'])
    assert one.relative == Path('a photo.png')
    assert one.read().tolist() == np.full((8, 12, 3), 90).tolist()
    for name, words in (('none.png', '404'), ('no.png', 'no.png. cannot be read')):
        with rejects(f'The image .*{words}'):
            find_inputs([f'{server}/{name}'])[0].read()
    monkeypatch.setattr(streams, 'MAX_DOWNLOAD_BYTES', 20)
    with rejects('has more than 0 MiB'):
        one.read()


def test_a_server_that_is_not_there_is_a_sentence():
    with rejects(r'cannot be downloaded \(.*Connection refused\)\.$'):
        find_inputs(['http://127.0.0.1:9/a.png'])[0].read()
