"""The example task of docs/extending.md, a number per image, works in a copy of the package."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pages
import pytest

FILE = re.compile(r'# (number/\w+\.py)\n')
RUN = 'work_dirs/squares'


@pytest.fixture
def folder(tmp_path) -> Path:
    """A folder with the copy, and images of squares whose sides are the labels."""
    ignored = shutil.ignore_patterns('__pycache__', '.mim')
    for part in ('vit_plugin', 'configs', 'tools'):
        shutil.copytree(part, tmp_path / 'copy' / part, ignore=ignored)
    shutil.copy('model-index.yml', tmp_path / 'copy')
    for block in pages.blocks('docs/extending.md', 'python'):
        if named := FILE.match(block.text):
            path = tmp_path / 'copy/vit_plugin/tasks' / named[1]
            path.parent.mkdir(exist_ok=True)
            path.write_text(block.text)
    images = tmp_path / 'squares'
    images.mkdir()
    rng, lines = np.random.default_rng(0), []
    for number in range(60):
        side = int(rng.integers(4, 28))
        image = np.zeros((32, 32, 3), np.uint8)
        top, left = rng.integers(0, 32 - side, 2)
        image[top : top + side, left : left + side] = 255
        cv2.imwrite(str(images / f'{number}.png'), image)
        lines.append(f'{number}.png,{side}')
    (images / 'numbers.csv').write_text('\n'.join(lines))
    return tmp_path


def vit_plugin(folder: Path, *words: str) -> str:
    """Run a command of the copy, and return what it prints."""
    path = os.pathsep.join(
        [str(folder / 'copy'), str(Path.cwd()), os.environ.get('PYTHONPATH', '')]
    )
    done = subprocess.run(
        [sys.executable, '-m', 'vit_plugin', *words],
        cwd=folder,
        env={**os.environ, 'PYTHONPATH': path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.returncode, done.stdout + done.stderr
    return done.stdout


@pytest.mark.nightly
def test_the_example_task_trains_predicts_and_exports(folder):
    pytest.importorskip('mmpretrain')
    assert 'number' in vit_plugin(folder, 'train', '--help')
    vit_plugin(
        folder,
        *['train', '--data', 'squares', '--task', 'number', '--epochs', '12', '--img-size', '32'],
    )
    metrics = json.loads((folder / RUN / 'metrics.json').read_text())
    assert metrics['best']['R2'] > 0.3
    images = ['squares/0.png', 'squares/1.png']
    lines = vit_plugin(folder, 'infer', RUN, *images, '--out', 'pictures').splitlines()
    predicted = [float(line.split(': ')[1].split(';')[0]) for line in lines[:2]]
    rows = (folder / 'squares/numbers.csv').read_text().splitlines()[:2]
    true = [float(row.split(',')[1]) for row in rows]
    assert predicted == pytest.approx(true, abs=12)
    assert len([*folder.glob('pictures/*.png')]) == 2
    vit_plugin(folder, 'infer', RUN, *images, '--out', 'numbers.csv')
    assert (folder / 'numbers.csv').read_text().startswith('image,number')
    pytest.importorskip('onnxruntime')
    vit_plugin(folder, 'export', RUN, '--out', 'number.onnx')
    lines = vit_plugin(folder, 'infer', 'number.onnx', *images).splitlines()
    assert [float(line.split(': ')[1]) for line in lines[:2]] == pytest.approx(predicted, abs=0.02)
