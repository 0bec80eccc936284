"""The page of ``demo`` in a headless browser."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from urllib.parse import urlsplit

import cv2
import numpy as np
import pytest
import torch
from mmengine.registry import MODELS, init_default_scope

from vit_plugin.config import read_config

DIGITS = 'configs/vit/vit-mini-p2_1xb16_digits.py'
CHROMIUM = (
    shutil.which('chromium') or shutil.which('chromium-browser') or shutil.which('google-chrome')
)
MAX_SECONDS = 300  # to wait for the page; other work may share the processor
ENVIRONMENT = {**os.environ, 'PYTHONPATH': str(Path.cwd())}
pytestmark = pytest.mark.filterwarnings('ignore')  # of the frameworks


def demo(checkpoint: Path, port: int) -> list[str]:
    """The command line that serves the page."""
    options = ('--config', DIGITS, '--port', str(port), '--device', 'cpu')
    return [sys.executable, 'tools/demo.py', str(checkpoint), *options]


@pytest.fixture
def checkpoint(tmp_path) -> Path:
    """A classifier of digits without a class token, which predicts a seven for any image."""
    cfg = read_config(DIGITS)
    init_default_scope(cfg.default_scope)
    model = MODELS.build(dict(cfg.model, data_preprocessor=cfg.data_preprocessor))
    model.head.layers.head.bias.data[7] = 2
    torch.save(
        dict(
            state_dict=model.state_dict(),
            meta=dict(dataset_meta=dict(classes=[f'digit {i}' for i in range(10)])),
        ),
        tmp_path / 'digits.pth',
    )
    return tmp_path / 'digits.pth'


@pytest.fixture
def address(checkpoint, tmp_path) -> Iterator[str]:
    """The address of the page, while it is served."""
    pytest.importorskip('gradio')
    log = tmp_path / 'log.txt'
    with log.open('w') as file:
        server = subprocess.Popen(
            demo(checkpoint, 17860), stdout=file, stderr=subprocess.STDOUT, env=ENVIRONMENT
        )
    try:
        ends = time.monotonic() + MAX_SECONDS
        while 'The page is at ' not in log.read_text():
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < ends, log.read_text()
            time.sleep(0.2)
        yield log.read_text().partition('The page is at ')[2].split()[0].rstrip('.')
    finally:
        server.terminate()
        server.wait()


@pytest.mark.nightly
@pytest.mark.skipif(CHROMIUM is None, reason='there is no Chromium')
def test_an_uploaded_image_is_classified_and_explained(address, tmp_path):
    browsing = pytest.importorskip('playwright.sync_api')
    cv2.imwrite(
        str(tmp_path / 'seven.png'),
        np.random.default_rng(0).integers(0, 256, (8, 8), dtype=np.uint8),
    )
    (tmp_path / 'damaged.png').write_text('no picture')
    with browsing.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=['--no-sandbox'])
        page = browser.new_page()
        page.set_default_timeout(1000 * MAX_SECONDS)
        urls = []
        page.on('request', lambda request: urls.append(request.url))
        page.goto(address)
        page.set_input_files('input[type=file]', tmp_path / 'seven.png')
        page.wait_for_selector('img[alt="Evidence for the most probable class"]')
        assert page.locator('[data-testid=label-output-value]').inner_text() == 'digit 7'
        assert page.locator('text=45%').count() == 1  # e^2 of e^2 + 9
        assert page.locator('img[alt="Features as colors"]').is_visible()
        # Without a class token, it shows the mean attention of all patches.
        assert page.locator('img[alt="Attention"]').is_visible()
        page.reload()
        page.set_input_files('input[type=file]', tmp_path / 'damaged.png')
        page.wait_for_selector('text=The image that you gave cannot be read')
        browser.close()
    assert {urlsplit(url).hostname for url in urls if url.startswith('http')} == {'127.0.0.1'}


@pytest.mark.nightly
def test_uploads_from_other_sites_and_of_large_files_are_refused(address):
    httpx = pytest.importorskip('httpx')
    site = address.rstrip('/')
    for size, headers, status in (
        (9, {}, 200),
        (9, dict(Origin=site), 200),
        (9, dict(Origin='http://x.example'), 403),
        (9, dict(Host='x.example'), 400),
        (65_000_000, dict(Origin=site), 413),
    ):
        sent = httpx.post(
            f'{site}/gradio_api/upload', files=dict(files=('x.png', bytes(size))), headers=headers
        )
        assert sent.status_code == status, sent.text
    assert httpx.get(site).status_code == 200


def test_invalid_calls_raise(run_command, checkpoint, monkeypatch):
    config = ('--config', DIGITS)
    # An empty module is enough: the calls are checked before Gradio is used.
    monkeypatch.setitem(sys.modules, 'gradio', ModuleType('gradio'))
    for arguments, words in (
        ((checkpoint,), 'holds no config; give it with --config'),
        ((checkpoint, *config, '--arch', 'B/16'), 'give one of them'),
        ((checkpoint, *config, '--port', '70000'), '70000 is not between 1 and 65535'),
    ):
        done = run_command('demo', *arguments)
        assert done.returncode
        assert words in done.stderr
    monkeypatch.setitem(sys.modules, 'gradio', None)
    assert (
        "pip install -c tests/constraints.txt -e '.[demo]'"
        in run_command('demo', checkpoint, *config).stderr
    )


@pytest.mark.nightly
def test_a_taken_port_raises(checkpoint):
    """In a process of its own, since Gradio leaves event loops open, which would fail the tests."""
    pytest.importorskip('gradio')
    with socket.socket() as listener:
        listener.bind(('127.0.0.1', 0))
        listener.listen()
        port = listener.getsockname()[1]
        done = subprocess.run(
            demo(checkpoint, port), capture_output=True, text=True, env=ENVIRONMENT
        )
    assert f'--port {port} is taken by another program; give another.' in done.stderr
