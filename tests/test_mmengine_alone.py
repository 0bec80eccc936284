"""What works with MMEngine alone, should the other frameworks stop."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.nightly
# They are made of the frameworks' classes. Everything else is there without them.
OF_FRAMEWORKS = {
    'vit_plugin.data.hugging_face_images',
    'vit_plugin.data.images',
    'vit_plugin.data.load_image',
    'vit_plugin.detection',
    'vit_plugin.models.data_preprocessor',
    'vit_plugin.models.heads',
    'vit_plugin.projects.self_supervised.dino',
    'vit_plugin.projects.self_supervised.lejepa',
}


@pytest.fixture(scope='module')
def alone() -> dict[str, dict]:
    script = Path(__file__).with_name('support') / 'mmengine_alone.py'
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_only_what_is_made_of_a_framework_is_missing(alone):
    missing = alone['unavailable']
    assert missing.keys() == OF_FRAMEWORKS, missing
    assert all(said.startswith('MissingExtraError: ') for said in missing.values()), missing


@pytest.mark.parametrize('task', ['passes', 'timm.safetensors', 'ours.pth', '.onnx', '.pt2', 'zoo'])
def test_classifiers_work(alone, task):
    if task not in alone['tasks']:
        pytest.skip('its extra is not installed')
    assert alone['tasks'][task] < 1e-4
