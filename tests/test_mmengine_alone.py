"""What works with MMEngine alone, without mmcv and the three frameworks."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.nightly
# Modules that use classes of the frameworks; all others can be imported without these.
NEED_FRAMEWORKS = {
    'vit_plugin.detection',
    'vit_plugin.inference.sliced_loops',
    'vit_plugin.projects.d_fine.d_fine_head',
    'vit_plugin.projects.d_fine.fine_losses',
    'vit_plugin.projects.d_fine.noised_detr_head',
    'vit_plugin.projects.d_fine.proposing_head',
    'vit_plugin.projects.d_fine.resnet_d',
    'vit_plugin.projects.d_fine.rt_detr_head',
    'vit_plugin.projects.d_fine.to_transformers',
    'vit_plugin.projects.depth.depth_annotations',
    'vit_plugin.projects.depth.depth_metric',
    'vit_plugin.projects.detr.frozen_resnet',
    'vit_plugin.projects.detr.published_heads',
    'vit_plugin.projects.detr_family.detector_resnet',
    'vit_plugin.projects.detr_family.grouped_detr_head',
    'vit_plugin.projects.detr_family.masked_head',
    'vit_plugin.projects.dinov3.dinov3',
    'vit_plugin.projects.ecdet.ecseg_head',
    'vit_plugin.projects.eomt.eomt_decode_head',
    'vit_plugin.projects.eomt.eomt_head',
    'vit_plugin.projects.lw_detr.iou_aware_loss',
    'vit_plugin.projects.lw_detr.lw_detr_head',
    'vit_plugin.projects.rf_detr.rf_detr_seg_head',
    'vit_plugin.projects.self_supervised.dino',
    'vit_plugin.projects.self_supervised.dino_head',
    'vit_plugin.projects.self_supervised.views',
    'vit_plugin.projects.transunet.transunet_head',
    'vit_plugin.projects.medical_volumes.volumes',
}


def run_script(*arguments: str) -> dict[str, dict]:
    """What benchmarks/mmengine_alone.py prints last, as JSON."""
    script = Path(__file__).parents[1] / 'benchmarks/mmengine_alone.py'
    command = [sys.executable, str(script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope='module')
def alone() -> dict[str, dict]:
    return run_script()


def test_only_modules_that_need_a_framework_are_missing(alone):
    missing = alone['unavailable']
    assert missing.keys() == NEED_FRAMEWORKS, missing
    assert all(error.startswith('MissingExtraError: ') for error in missing.values()), missing


def test_classifier_equals_that_with_the_frameworks(alone):
    """Weights, predictions, metrics, features and probes, also after a run was resumed."""
    results = alone['classifier']
    assert results['again'] == results['run']
    assert results == run_script('all')['classifier']


@pytest.mark.parametrize('task', ['passes', 'timm.safetensors', 'ours.pth', '.onnx', '.pt2', 'zoo'])
def test_classifiers_work(alone, task):
    if task not in alone['tasks']:
        pytest.skip('its extra is not installed')
    assert alone['tasks'][task] < 1e-4
