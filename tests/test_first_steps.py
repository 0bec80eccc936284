"""Runs the tutorial pages and the notebook from top to bottom, as a reader would."""

import os
import re
import sys
import venv
from collections.abc import Callable
from pathlib import Path
from subprocess import run

import pages
import pytest
from extras import needs_mmdet

NOTEBOOK = 'docs/first_steps.ipynb'
EXECUTE = """
import sys
import nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], 4)
NotebookClient(notebook, timeout=1800).execute()
cells = [cell for cell in notebook.cells if cell.cell_type == 'code']
print(*(output['text'] for cell in cells for output in cell.outputs
        if output.get('name') == 'stdout'))
"""


@pytest.fixture
def environment(tmp_path) -> Callable[..., str]:
    """A function that makes a new environment with this one's packages and some more.

    It takes their names, and returns the path of the new environment's Python.
    """

    def make(*packages: str) -> str:
        venv.create(tmp_path / 'env', with_pip=True)
        site = next((tmp_path / 'env').glob('lib/python*/site-packages'))
        (site / 'outer.pth').write_text(str(Path(pytest.__file__).parents[1]))
        python = str(tmp_path / 'env/bin/python')
        run([python, '-m', 'pip', 'install', '-q', *packages], check=True)
        return python

    return make


@pytest.mark.nightly
@needs_mmdet
def test_first_steps(tmp_path):
    shown = pages.run_page('docs/first_steps.md', tmp_path, timeout=1800)
    (top1,) = re.findall(r'accuracy/top1 +([\d.]+)', shown)
    assert float(top1) > 93
    assert float(re.findall(r'coco/bbox_mAP +([\d.]+)', shown)[-1]) > 90
    threes = [line for line in shown.splitlines() if line.startswith('digits/3/')]
    assert sum(': 3 ' in line for line in threes) > 0.9 * len(threes)
    assert 'embeddings.npz: 1797 vectors of 192 numbers.' in shown
    neighbors = re.findall(r'^0\.\d+ digits/(\d)/', shown, re.MULTILINE)
    assert neighbors.count('3') >= 3
    boxes = [line for line in shown.splitlines() if line.startswith('shapes/JPEGImages/')]
    assert sum('square' in line or 'circle' in line for line in boxes) == len(boxes) == 120
    assert len(list((tmp_path / 'boxes').glob('*.jpg'))) == 120


@pytest.mark.nightly
def test_with_lightning_and_transformers(environment, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, 'executable', environment('lightning', 'transformers'))
    shown = pages.run_page('docs/pytorch.md', tmp_path, timeout=1800)
    accuracy = float(shown.rpartition('accuracy ')[2].split()[0])
    assert accuracy > 0.8
    assert (tmp_path / 'plain.pt2').is_file()


@pytest.mark.nightly
def test_the_notebook(environment, tmp_path):
    python = environment('nbclient', 'ipykernel')
    env = {
        **os.environ,
        'PATH': f'{Path(python).parent}:{os.environ["PATH"]}',
        'PYTHONPATH': str(pages.ROOT),
    }
    done = run(
        [python, '-c', EXECUTE, pages.ROOT / NOTEBOOK],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert float(done.stdout.rpartition('accuracy ')[2].split()[0]) > 95
