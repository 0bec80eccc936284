"""MMPretrain with a version of transformers that its multimodal models do not work with.

Each import is tried in a new process.
"""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope='module')
def empty_transformers(tmp_path_factory) -> dict[str, str]:
    """Environment variables with which transformers and pycocotools seem to be installed, and
    transformers lacks the classes that MMPretrain imports.
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
def test_mmpretrain_itself_cannot_be_imported(empty_transformers):
    """The reason for the work-around. When this fails, MMPretrain works with transformers again."""
    assert run('import mmpretrain.models', empty_transformers).returncode != 0


@pytest.mark.nightly
def test_the_plugin_leaves_the_multimodal_models_out(empty_transformers):
    done = run(
        'from vit_plugin.models import ViTClsHead\n'
        'from mmpretrain.registry import MODELS\n'
        'print(MODELS.get("BlipCaption").__name__, MODELS.get("ImageClassifier").__name__)',
        empty_transformers,
    )
    assert done.stdout.splitlines()[-1:] == ['ask_install ImageClassifier'], done.stderr


def statements_before_imports(path: Path) -> list[list[str]]:
    """For each import of a framework's models in a file, the statements before it in its block."""
    statements_before = []
    for node in ast.walk(ast.parse(path.read_text())):
        for body in filter(None, [getattr(node, 'body', None), getattr(node, 'orelse', None)]):
            for number, statement in enumerate(body if isinstance(body, list) else ()):
                if isinstance(statement, ast.ImportFrom) and (statement.module or '').startswith(
                    tuple(
                        f'{host}.{part}'
                        for host in ('mmpretrain', 'mmdet', 'mmseg')
                        for part in ('models', 'datasets', 'apis', 'evaluation')
                    )
                ):
                    statements_before.append([ast.unparse(earlier) for earlier in body[:number]])
    return statements_before


def test_make_importable_precedes_every_import_of_framework_models():
    """In a user's program, any module may be the first to import a framework's models."""
    files = {path: statements_before_imports(path) for path in Path('vit_plugin').rglob('*.py')}
    importing = {str(path) for path, imports in files.items() if imports}
    assert 'vit_plugin/projects/self_supervised/views.py' in importing
    lacking = {
        str(path)
        for path, imports in files.items()
        for before in imports
        # The package `detection` calls make_importable() in its __init__.py.
        if 'make_importable()' not in before and path.parent.name != 'detection'
    }
    assert not lacking
