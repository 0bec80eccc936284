"""The model and weights that a training starts from, before the data are read."""

import json
import subprocess
import sys

import pytest
import timm
import torch

from vit_plugin.from_folder.schedule import SLOWER_STEM
from vit_plugin.from_folder.small_hybrids import SMALL_SIDE
from vit_plugin.from_folder.starting_point import StartingPoint
from vit_plugin.models import VisionTransformer

PROGRAM = """
import sys, warnings
warnings.simplefilter('ignore')
from vit_plugin.tasks.detection.detection_recipe import DetectionRecipe
from vit_plugin.from_folder.request import Request
task = DetectionRecipe(Request('data', task='detection', weights=sys.argv[1]))
import mmdet.models
print(task.start.saved_backbone['arch'])
"""
CONFIG = """
default_scope = 'mmdet'
model = dict(type='RetinaNet', backbone=dict(type='vit_plugin.VisionTransformer', arch='Ti/16'))
"""


@pytest.mark.nightly
def test_detector_weights_load_without_compiled_ops(tmp_path):
    """Names in the config are looked up in MMDetection, which imports mmcv's compiled ops."""
    pytest.importorskip('mmdet')
    path = tmp_path / 'detector.pth'
    torch.save(dict(meta=dict(cfg=CONFIG), state_dict={}), path)
    done = subprocess.run(
        [sys.executable, '-c', PROGRAM, path], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == 'Ti/16'


@pytest.mark.parametrize(('arch', 'key'), [('test_resnet+Ti/16', 'stem'), ('Ti/16', 'fine_tuned')])
def test_trained_stem_with_new_blocks_has_its_own_schedule(arch, key, tmp_path):
    path = tmp_path / 'cnn.pth'
    torch.save(timm.create_model('test_resnet').state_dict(), path)
    start = StartingPoint(arch, str(path), (0, SMALL_SIDE))
    assert start.schedule_key == key
    names = {name for name, _ in start.build_meta_backbone(64).named_parameters()}
    (prefix,) = (name.removeprefix('backbone.') for name in SLOWER_STEM)
    assert any(name.startswith(prefix) for name in names) == (key == 'stem')


def test_run_without_an_arch_has_the_default_one(tmp_path):
    patches = dict(with_cls_token=False, out_type='avg_featmap')
    backbone = dict(patches, type='vit_plugin.VisionTransformer')
    text = f'model = dict(type="ImageClassifier", backbone={backbone})'
    torch.save(dict(meta=dict(cfg=text), state_dict={}), tmp_path / 'run.pth')
    start = StartingPoint('', str(tmp_path / 'run.pth'), (0, SMALL_SIDE))
    with torch.device('meta'):
        default = VisionTransformer(**patches)
    assert start.backbone(224)['arch'] == 'B/16'
    assert start.native_size() == default.img_size[0] == 224
    assert start.build_meta_backbone(224).embed_dims == default.embed_dims


def test_a_model_in_the_working_directory_decides_nothing(tmp_path, monkeypatch):
    pixels = StartingPoint('', None, (0, SMALL_SIDE)).pixels
    preprocessing = dict(input_size=[3, 8, 8], mean=[0.1] * 3, std=[0.2] * 3, crop_pct=1.0)
    (tmp_path / 'config.json').write_text(json.dumps(dict(pretrained_cfg=preprocessing)))
    (tmp_path / 'model.safetensors').touch()
    monkeypatch.chdir(tmp_path)
    assert StartingPoint('', None, (0, SMALL_SIDE)).pixels == pixels
