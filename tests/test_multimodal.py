"""MMPretrain beside a transformers that its multimodal models do not fit, in processes of their
own.
"""

import ast
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


def imports_of_models(path: Path) -> list[list[str]]:
    """The lines before each import of a framework's models in a file, within the same block."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        for body in filter(None, [getattr(node, 'body', None), getattr(node, 'orelse', None)]):
            for number, line in enumerate(body if isinstance(body, list) else ()):
                if isinstance(line, ast.ImportFrom) and (line.module or '').startswith(
                    tuple(
                        f'{host}.{part}'
                        for host in ('mmpretrain', 'mmdet', 'mmseg')
                        for part in ('models', 'datasets', 'apis', 'evaluation')
                    )
                ):
                    found.append([ast.unparse(before) for before in body[:number]])
    return found


def test_every_import_of_their_models_is_made_possible_first():
    """In a user's program, any module of ours may be the first to import a framework's models."""
    files = {path: imports_of_models(path) for path in Path('vit_plugin').rglob('*.py')}
    found = {str(path) for path, imports in files.items() if imports}
    assert 'vit_plugin/projects/self_supervised/views.py' in found
    lacking = {
        str(path)
        for path, imports in files.items()
        for before in imports
        # The package `detection` has done the same when it was imported.
        if 'make_importable()' not in before and path.parent.name != 'detection'
    }
    assert not lacking
