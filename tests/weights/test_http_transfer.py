"""A busy server is asked again, and the timeout is a number."""

import pytest
from rejection import rejects

from benchmarks.download_cases import content
from benchmarks.rude_server import serving
from vit_plugin.weights import http_transfer
from vit_plugin.weights.http_transfer import TransferError, transfer


@pytest.fixture(autouse=True)
def without_proxy(monkeypatch):
    monkeypatch.setenv('NO_PROXY', '*')


def test_requests_to_a_busy_server_are_repeated_with_one_message(tmp_path, monkeypatch):
    printed: list[str] = []
    monkeypatch.setattr(http_transfer, 'print_log', lambda text, *_: printed.append(text))
    # The pauses add up to the minute that the message states.
    pauses = (http_transfer.RETRY_PAUSE * 2**retry for retry in range(1, http_transfer.RETRIES))
    assert sum(pauses) > 60
    monkeypatch.setattr(http_transfer, 'RETRY_PAUSE', 0.01)
    with serving(content()) as server, pytest.raises(TransferError, match='status 503'):
        transfer(f'{server.address}/503/B_16.npz', tmp_path / 'part')
    assert printed == ['status 503: trying again, for up to a minute.']


@pytest.mark.parametrize('text', ['0', '-1', 'nan', '', 'much'])
def test_invalid_timeouts_raise(text, tmp_path, monkeypatch):
    monkeypatch.setenv('VIT_PLUGIN_DOWNLOAD_SECONDS', text)
    with rejects(f'VIT_PLUGIN_DOWNLOAD_SECONDS={text!r} must be a number above 0'):
        transfer('http://127.0.0.1:1/B_16.npz', tmp_path / 'part')
