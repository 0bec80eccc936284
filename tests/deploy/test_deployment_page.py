"""The programs of docs/deployment.md, on files of ``vit-plugin export``, against ``infer``."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import cv2
import numpy as np
import pages
import pytest

from anyfolder.pixels.images import read_image
from benchmarks import exported_families as families
from benchmarks.exported_answers import KEEP, STRETCH
from vit_plugin.__main__ import main as command
from vit_plugin.deploy.onnx_model import OnnxModel

PAGE = 'docs/deployment.md'
SHAPES = [(96, 128), (128, 96), (100, 100), (61, 300)]
SCORE_THR = 0.3

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(
        not all(map(find_spec, ('mmdet', 'onnxruntime', 'onnxscript'))),
        reason='needs MMDetection and the extra export',
    ),
]


def programs() -> dict[str, str]:
    """The first program of the page, and each of those that replace its runtime."""
    first, *others = (block.text for block in pages.blocks(PAGE, 'python'))
    before, _, after = first.partition('boxes, scores, labels = session.run(None, given)\n')
    assert after
    return {
        name: before + text + after
        for name, text in zip(
            ('onnxruntime', 'openvino', 'cv2'),
            ('boxes, scores, labels = session.run(None, given)\n', *others),
            strict=True,
        )
    }


@pytest.fixture(scope='module', params=['stretch', 'keep_ratio'])
def exported(request, tmp_path_factory) -> Path:
    """The file of a detector, for images of one size."""
    folder = tmp_path_factory.mktemp(request.param)
    test = {
        'stretch': families.Test(STRETCH),
        'keep_ratio': families.Test(KEEP, dict(size_divisor=32)),
    }[request.param]
    checkpoint, file = (
        families.save('RetinaNet', test, folder / 'epoch_1.pth'),
        folder / 'model.onnx',
    )
    assert command(['export', str(checkpoint), '--out', str(file)]) == 0
    return file


@pytest.mark.parametrize('runtime', ['onnxruntime', 'openvino', 'cv2'])
def test_its_boxes_are_those_of_infer(exported, tmp_path, runtime):
    if not find_spec(runtime) or (runtime == 'cv2' and cv2.__version__ < '5'):
        pytest.skip(f'needs {runtime}')
    model = OnnxModel(exported)
    (tmp_path / 'program.py').write_text(programs()[runtime])
    random = np.random.default_rng(0)
    for shape in SHAPES:
        image = cv2.resize(random.integers(0, 256, (5, 6, 3), np.uint8), shape[::-1])
        cv2.imwrite(str(tmp_path / 'image.png'), image)
        done = subprocess.run(
            [sys.executable, 'program.py', str(exported), 'image.png'],
            cwd=tmp_path,
            env=dict(os.environ, OMP_NUM_THREADS='1'),
            capture_output=True,
            text=True,
            check=True,
        )
        rows = [line.rsplit(maxsplit=5) for line in done.stdout.splitlines()]
        wanted = model(read_image(tmp_path / 'image.png'))
        likely = wanted.scores >= SCORE_THR
        assert len(rows) == likely.sum() > 0
        found = np.array([[float(value) for value in row[2:]] for row in rows])
        apart = np.abs(found[:, None] - wanted.boxes[likely]).max(-1)
        names = np.array([model.classes[label] for label in wanted.labels[likely]])
        apart[np.array([name for name, *_ in rows])[:, None] != names] = np.inf
        # Boxes of equal scores may change places.
        assert max(apart.min(0).max(), apart.min(1).max()) < 0.2
