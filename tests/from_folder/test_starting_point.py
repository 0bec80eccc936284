"""Where a training starts, before the data are read."""

import subprocess
import sys

import pytest
import torch

PROGRAM = """
import sys, warnings
warnings.simplefilter('ignore')
from vit_plugin.from_folder.detection import Detection
from vit_plugin.from_folder.request import Request
task = Detection(Request('data', task='detection', weights=sys.argv[1]))
import mmdet.models
print(task.start.saved_backbone['arch'])
"""
CONFIG = """
default_scope = 'mmdet'
model = dict(type='RetinaNet', backbone=dict(type='vit_plugin.VisionTransformer', arch='Ti/16'))
"""


@pytest.mark.nightly
def test_weights_of_a_detector_need_no_compiled_ops(tmp_path):
    """What its config names is looked up in MMDetection, whose import asks for mmcv's ops."""
    pytest.importorskip('mmdet')
    path = tmp_path / 'detector.pth'
    torch.save(dict(meta=dict(cfg=CONFIG), state_dict={}), path)
    done = subprocess.run(
        [sys.executable, '-c', PROGRAM, path], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == 'Ti/16'
