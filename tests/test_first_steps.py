"""The pages of first steps from top to bottom, as a reader would."""

import sys
import venv
from importlib.util import find_spec
from pathlib import Path
from subprocess import run

import pages
import pytest

pytestmark = pytest.mark.nightly


@pytest.mark.skipif(not find_spec('mmdet'), reason='mmdet is not installed')
def test_first_steps(tmp_path):
    shown = pages.run_page('docs/first_steps.md', tmp_path, timeout=1800)
    assert 'digits: 10 classes. 180 images to train on, 20 images held out' in shown
    assert 'embeddings.npz: 200 vectors of 192 numbers.' in shown
    assert len(list((tmp_path / 'boxes').glob('*.png'))) == 10
    assert '1.000 digits/digit 0/' in shown


def test_with_lightning_and_transformers(tmp_path, monkeypatch):
    """Both are installed into an environment of their own, which has the packages of this one besides."""
    venv.create(tmp_path / 'env', with_pip=True)
    site = next((tmp_path / 'env').glob('lib/python*/site-packages'))
    (site / 'outer.pth').write_text(str(Path(pytest.__file__).parents[1]))
    python = tmp_path / 'env/bin/python'
    run([python, '-m', 'pip', 'install', '-q', 'lightning', 'transformers'], check=True)
    monkeypatch.setattr(sys, 'executable', str(python))
    shown = pages.run_page('docs/elsewhere.md', tmp_path, timeout=1800)
    accuracy = float(shown.rpartition('accuracy ')[2].split()[0])
    assert accuracy > 0.8
    assert 'torch.Size([1, 10])' in shown
