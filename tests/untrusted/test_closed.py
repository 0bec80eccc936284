"""What a stranger's config could open is closed, in the thread that builds from it, and open again
after it.
"""

import builtins
import io
import pickle
import socket
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import mmengine
import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.registry import MODELS

from vit_plugin.errors import ConfigError
from vit_plugin.untrusted.closed import DOORS, closed, files_closed


@pytest.fixture
def files(tmp_path) -> Path:
    """Files with 5 in them, in every form."""
    (tmp_path / 'x.txt').write_text('5')
    (tmp_path / 'x.json').write_text('5')
    (tmp_path / 'x.yaml').write_text('5')
    (tmp_path / 'x.py').write_text('x = 5')
    (tmp_path / 'x.pkl').write_bytes(pickle.dumps(5))
    torch.save(5, tmp_path / 'x.pth')
    np.save(tmp_path / 'x.npy', 5)
    return tmp_path


def by_builtin(path: Path) -> str:
    with open(path) as file:
        return file.read()


OPENERS = {
    'x.txt': [by_builtin, Path.read_text, mmengine.list_from_file],
    'x.json': [mmengine.load],
    'x.yaml': [mmengine.load],
    'x.pkl': [mmengine.load],
    'x.py': [lambda path: Config.fromfile(path)],  # not the function that is there now
    'x.npy': [np.load, lambda path: np.fromfile(path, np.uint8)],
    'x.pth': [
        lambda path: torch.load(path, weights_only=False),
        lambda path: torch.load(path, weights_only=True),
    ],
}
CODE = ('x.yaml', 'x.pkl', 'x.py')


@pytest.mark.parametrize('name', OPENERS)
def test_no_file_is_opened(files, name):
    for opens in OPENERS[name]:
        with (
            closed('mine.pth'),
            pytest.raises(ConfigError, match=r"The config in 'mine.pth' names .* that would"),
        ):
            opens(files / name)
        opens(files / name)


@pytest.mark.parametrize('name', OPENERS)
def test_a_test_may_open_what_is_no_code(files, name):
    for opens in OPENERS[name]:
        with closed('mine.pth', files=False):
            if name in CODE:
                with pytest.raises(ConfigError, match='that would'):
                    opens(files / name)
            elif name != 'x.pth':
                opens(files / name)
            with files_closed(), pytest.raises(ConfigError, match='that would'):
                opens(files / name)
    with closed('mine.pth', files=False):
        torch.load(files / 'x.pth', weights_only=True)
        with pytest.raises(ConfigError, match='would unpickle a file'):
            torch.load(files / 'x.pth')


def test_no_name_is_imported_by_its_path():
    with closed('mine.pth'), pytest.raises(RuntimeError, match='Failed to get'):
        MODELS.build(dict(type='collections.OrderedDict'))
    assert MODELS.build(dict(type='collections.OrderedDict')) == {}


def test_nothing_is_asked_of_the_network():
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args) -> None:
            pass

    server = HTTPServer(('127.0.0.1', 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f'http://127.0.0.1:{server.server_port}/'
    for files in (True, False):
        with (
            closed('mine.pth', files),
            pytest.raises(ConfigError, match=r'would connect to 127\.0\.0\.1'),
        ):
            urllib.request.urlopen(address)
        with (
            closed('mine.pth', files),
            socket.socket() as plain,
            pytest.raises(ConfigError, match='would connect'),
        ):
            plain.connect(('127.0.0.1', server.server_port))
    assert not asked
    urllib.request.urlopen(address).close()
    server.shutdown()
    server.server_close()
    assert asked == ['/']


def test_installed_files_are_read():
    with closed('mine.pth'):
        assert 'def load' in Path(mmengine.fileio.io.__file__).read_text()


def test_other_threads_open_files(files):
    inside, done, read = threading.Event(), threading.Event(), []

    def build() -> None:
        with closed('mine.pth'):
            inside.set()
            assert done.wait(10)

    thread = threading.Thread(target=build)
    thread.start()
    assert inside.wait(10)
    with closed('other.pth'):  # and this ends before
        pass
    read.append((files / 'x.txt').read_text())
    done.set()
    thread.join()
    assert read == ['5']


def test_all_is_put_back():
    def now() -> list:
        return [vars(owner).get(name) for owner, name, _ in DOORS]

    before = now()
    with closed('mine.pth'), closed('other.pth'):
        assert now() != before
    assert now() == before
    with pytest.raises(ZeroDivisionError), closed('mine.pth'):
        _ = 1 / 0
    assert now() == before
    assert builtins.open is io.open
    with closed(None):
        assert now() == before


def test_metadata_of_packages_is_read_wherever_it_lies(tmp_path):
    """The first call of importlib.metadata reads that of every package on the path, also of a
    clone.
    """
    for name, is_open in (('entry_points.txt', True), ('evil.pkl', False)):
        path = tmp_path / 'mine.egg-info' / name
        path.parent.mkdir(exist_ok=True)
        path.write_text('')
        with closed('mine.pth'):
            if is_open:
                path.read_text()
            else:
                with pytest.raises(ConfigError, match='that would open'):
                    path.read_text()
