"""Downloads are cached only if they are complete and readable, else they raise one sentence."""

import io
import os

import pytest
import torch
from mmengine.runner import load_checkpoint
from rejection import rejects

from benchmarks.download_cases import WEIGHTS, cases, content
from benchmarks.downloads import Case, attempt
from benchmarks.rude_server import serving
from vit_plugin.weights import downloads, open_checkpoint, reading_safely
from vit_plugin.weights.downloads import cached_path


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv('NO_PROXY', '*')
    monkeypatch.setattr(torch.hub, 'get_dir', lambda: str(tmp_path))
    return tmp_path / 'checkpoints'


@pytest.mark.filterwarnings('ignore:.*use of fork:DeprecationWarning')
@pytest.mark.parametrize('case', cases(), ids=str)
def test_downloads_are_correct_or_raise_one_sentence(case: Case, tmp_path):
    result, message = attempt(case, tmp_path)
    assert result == ('one sentence' if case.message else 'right'), message


def test_requests_to_a_busy_server_are_repeated_with_one_message(cache, monkeypatch):
    printed: list[str] = []
    monkeypatch.setattr(downloads, 'print_log', lambda text, *_: printed.append(text))
    # The pauses add up to the minute that the message states.
    assert sum(downloads.RETRY_PAUSE * 2**retry for retry in range(1, downloads.RETRIES)) > 60
    monkeypatch.setattr(downloads, 'RETRY_PAUSE', 0.01)
    with serving(content()) as server, rejects('status 503'):
        open_checkpoint(f'{server.address}/503/B_16.npz')
    assert printed[1:] == ['status 503: trying again, for up to a minute.']


def test_mmengine_downloads_in_the_same_way(cache):
    """Within ``reading_safely``, and everywhere for the file formats that we add."""
    model = torch.nn.Linear(500, 40, bias=False)
    with serving(content()) as server:
        with (
            reading_safely(),
            rejects(r'html/x.pth cannot be downloaded \(it is a web page'),
        ):
            load_checkpoint(model, f'{server.address}/html/x.pth')
        with rejects('html/x.npz#sha256=01234567 cannot be downloaded'):
            load_checkpoint(model, f'{server.address}/html/x.npz#sha256=01234567')
        load_checkpoint(model, f'{server.address}/right/get?file=x.npz')
    assert torch.equal(model.weight.detach(), torch.from_numpy(WEIGHTS['weight']).float())


def test_checkpoints_that_could_run_code_are_not_cached(cache):
    file = io.BytesIO()
    torch.save({'state_dict': {'weight': torch.ones(2)}, 'hook': os.getcwd}, file)
    with (
        serving(file.getvalue()) as server,
        rejects('right/x.pth is .*that could run code'),
    ):
        open_checkpoint(f'{server.address}/right/x.pth')
    assert {path.suffix for path in cache.rglob('*.*')} == {'.lock'}


def test_cached_paths_stay_the_same():
    assert cached_path('https://host/a/R50+ViT-B_16.npz?x=1').parts[-2:] == (
        '366fc5c676dc',
        'R50+ViT-B_16.npz',
    )


@pytest.mark.parametrize('text', ['0', '-1', 'nan', '', 'much'])
def test_invalid_timeouts_raise(text, cache, monkeypatch):
    monkeypatch.setenv('VIT_PLUGIN_DOWNLOAD_SECONDS', text)
    with rejects(f'VIT_PLUGIN_DOWNLOAD_SECONDS={text!r} must be a number above 0'):
        open_checkpoint('http://127.0.0.1:1/B_16.npz')


@pytest.mark.parametrize(
    'error', [TimeoutError('timed out'), RuntimeError('peer closed connection\nmore')]
)
@pytest.mark.parametrize('hub', ['hf', 'timm'])
def test_any_error_of_a_hub_becomes_one_sentence(hub, error, monkeypatch):
    """The hubs' libraries let errors of their HTTP clients through."""

    def fail(*args, **kwargs):
        raise error

    monkeypatch.setattr('huggingface_hub.hf_hub_download', fail)
    monkeypatch.setattr('timm.create_model', fail)
    with rejects(rf'{hub}://vit_tiny cannot be .* \({str(error).splitlines()[0]}\)'):
        open_checkpoint(f'{hub}://vit_tiny')
