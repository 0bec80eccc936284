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
def test_a_download_is_right_or_one_sentence(case: Case, tmp_path):
    column, said = attempt(case, tmp_path)
    assert column == ('one sentence' if case.says else 'right'), said


def test_a_busy_server_is_asked_again_and_said_to_be_once(cache, monkeypatch):
    said: list[str] = []
    monkeypatch.setattr(downloads, 'print_log', lambda text, *_: said.append(text))
    assert sum(downloads.PAUSE * 2**retry for retry in range(1, downloads.RETRIES)) > 60
    monkeypatch.setattr(downloads, 'PAUSE', 0.01)
    with serving(content()) as server, rejects('status 503'):
        open_checkpoint(f'{server.address}/503/B_16.npz')
    assert said[1:] == ['status 503: trying again, for up to a minute.']


def test_mmengine_fetches_in_the_same_way(cache):
    """By ``load_from`` and ``init_cfg`` where checkpoints are read safely, and everywhere for our
    kinds of files.
    """
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


def test_a_checkpoint_that_could_run_code_is_not_kept(cache):
    file = io.BytesIO()
    torch.save({'state_dict': {'weight': torch.ones(2)}, 'hook': os.getcwd}, file)
    with (
        serving(file.getvalue()) as server,
        rejects('right/x.pth is .*that could run code'),
    ):
        open_checkpoint(f'{server.address}/right/x.pth')
    assert {path.suffix for path in cache.rglob('*.*')} == {'.lock'}


def test_the_file_is_where_it_was_before():
    assert cached_path('https://host/a/R50+ViT-B_16.npz?x=1').parts[-2:] == (
        '366fc5c676dc',
        'R50+ViT-B_16.npz',
    )


@pytest.mark.parametrize('text', ['0', '-1', 'nan', '', 'much'])
def test_a_timeout_that_is_no_number_above_0_is_one_sentence(text, cache, monkeypatch):
    monkeypatch.setenv('VIT_PLUGIN_DOWNLOAD_SECONDS', text)
    with rejects(f'VIT_PLUGIN_DOWNLOAD_SECONDS={text!r} must be a number above 0'):
        open_checkpoint('http://127.0.0.1:1/B_16.npz')


@pytest.mark.parametrize(
    'error', [TimeoutError('timed out'), RuntimeError('peer closed connection\nmore')]
)
@pytest.mark.parametrize('hub', ['hf', 'timm'])
def test_any_error_of_a_hub_is_one_sentence(hub, error, monkeypatch):
    """Their libraries ask by another one, whose errors they let through."""

    def fail(*args, **kwargs):
        raise error

    monkeypatch.setattr('huggingface_hub.hf_hub_download', fail)
    monkeypatch.setattr('timm.create_model', fail)
    with rejects(rf'{hub}://vit_tiny cannot be .* \({str(error).splitlines()[0]}\)'):
        open_checkpoint(f'{hub}://vit_tiny')
