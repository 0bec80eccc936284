"""The demo model finds the shapes in its images, as a checkpoint and as an ONNX file."""

import sys
from importlib.util import find_spec

import cv2
import numpy as np
import pytest

from vit_plugin.commands import infer
from vit_plugin.commands.entry import run_command
from vit_plugin.deploy.exported_model import ExportedModel
from vit_plugin.inference.demo_model import DEMO_CHECKPOINT, DEMO_IMAGES, DEMO_ONNX

MAX_BYTES = 2_000_000  # of all files together
needs_onnxruntime = pytest.mark.skipif(
    not find_spec('onnxruntime'), reason='onnxruntime is not installed'
)


def test_the_demo_model_is_small():
    files = [path for path in DEMO_CHECKPOINT.rglob('*') if path.suffix not in ('.py', '.pyc')]
    assert sum(path.stat().st_size for path in files if path.is_file()) < MAX_BYTES


@needs_onnxruntime
def test_demo_draws_pictures_without_further_arguments(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, 'argv', ['vit-plugin infer', '--demo'])
    run_command(infer)
    out = capsys.readouterr().out
    for image in DEMO_IMAGES.iterdir():
        picture = cv2.imread(f'demo_pictures/{image.name}')
        assert not np.array_equal(picture, cv2.imread(str(image)))
        assert f'demo_pictures/{image.name}' in out
    assert 'disc' in out


@pytest.mark.parametrize('words', [['--demo', 'model.pth'], ['--demo', '--device', 'cpu'], []])
def test_demo_with_other_arguments_raises(words, monkeypatch):
    monkeypatch.setattr(sys, 'argv', ['vit-plugin infer', *words])
    with pytest.raises(SystemExit, match=r'--demo'):
        run_command(infer)


@needs_onnxruntime
@pytest.mark.skipif(not find_spec('mmdet'), reason='mmdet is not installed')
def test_both_files_give_the_same_boxes():
    import vit_plugin

    trained, file = vit_plugin.load(DEMO_CHECKPOINT), ExportedModel(DEMO_ONNX)
    for path in DEMO_IMAGES.iterdir():
        image = cv2.imread(str(path))
        expected, found = trained(image), file(image)
        confident = expected.scores > 0.5
        assert confident.any()
        for box, label in zip(expected.boxes[confident], expected.labels[confident], strict=True):
            distances = np.abs(found.boxes[found.labels == label] - box).max(1)
            assert distances.min() < 2  # pixels
