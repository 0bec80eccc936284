"""The model that comes with the package finds the shapes of its images, in both of its forms."""

import sys
from importlib.util import find_spec

import cv2
import numpy as np
import pytest

from vit_plugin.commands import infer
from vit_plugin.commands.entry import run_command
from vit_plugin.deploy.exported_model import ExportedModel
from vit_plugin.inference.demo_model import DEMO_CHECKPOINT, DEMO_IMAGES, DEMO_ONNX

LARGEST = 2_000_000  # bytes, of all files
needs_onnxruntime = pytest.mark.skipif(
    not find_spec('onnxruntime'), reason='onnxruntime is not installed'
)


def test_it_is_small():
    files = [path for path in DEMO_CHECKPOINT.rglob('*') if path.suffix not in ('.py', '.pyc')]
    assert sum(path.stat().st_size for path in files if path.is_file()) < LARGEST


@needs_onnxruntime
def test_a_command_without_arguments_draws_pictures(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, 'argv', ['vit-plugin infer', '--demo'])
    run_command(infer)
    said = capsys.readouterr().out
    for image in DEMO_IMAGES.iterdir():
        picture = cv2.imread(f'demo_pictures/{image.name}')
        assert not np.array_equal(picture, cv2.imread(str(image)))
        assert f'demo_pictures/{image.name}' in said
    assert 'disc' in said


@pytest.mark.parametrize('words', [['--demo', 'model.pth'], ['--demo', '--device', 'cpu'], []])
def test_a_model_of_ones_own_needs_images(words, monkeypatch):
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
        ours, theirs = trained(image), file(image)
        sure = ours.scores > 0.5
        assert sure.any()
        for box, label in zip(ours.boxes[sure], ours.labels[sure], strict=True):
            apart = np.abs(theirs.boxes[theirs.labels == label] - box).max(1)
            assert apart.min() < 2
