"""MMPretrain beside a transformers that its multimodal models do not fit, in processes of their
own.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope='module')
def beside_transformers(tmp_path_factory) -> dict[str, str]:
    """An environment in which transformers and pycocotools are installed, and transformers has
    nothing in it.
    """
    site = tmp_path_factory.mktemp('site')
    for name, version in (('transformers', '5.23.0'), ('pycocotools', '2.0.11')):
        metadata = site / f'{name}-{version}.dist-info/METADATA'
        metadata.parent.mkdir()
        metadata.write_text(f'Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n')
    (site / 'transformers').mkdir()
    (site / 'transformers/__init__.py').write_text('PreTrainedModel = None\n')
    return {**os.environ, 'PYTHONPATH': os.pathsep.join([str(site), str(Path.cwd())])}


def run(code: str, env: dict[str, str]) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, '-W', 'ignore', '-c', code], env=env, capture_output=True, text=True
    )


@pytest.mark.nightly
def test_mmpretrain_alone_cannot_be_imported(beside_transformers):
    """The reason for all this. When it fails, MMPretrain fits transformers again."""
    assert run('import mmpretrain.models', beside_transformers).returncode != 0


@pytest.mark.nightly
def test_ours_leave_the_multimodal_models_out(beside_transformers):
    done = run(
        'from vit_plugin.models import ViTClsHead\n'
        'from mmpretrain.registry import MODELS\n'
        'print(MODELS.get("BlipCaption").__name__, MODELS.get("ImageClassifier").__name__)',
        beside_transformers,
    )
    assert done.stdout.splitlines()[-1:] == ['ask_install ImageClassifier'], done.stderr
