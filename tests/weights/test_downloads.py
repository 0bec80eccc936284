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
from vit_plugin.weights import open_checkpoint, reading_safely
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
