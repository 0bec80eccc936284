"""Packages that the frameworks import, but few runs need, are imported only for those runs."""

import subprocess
import sys
from importlib.util import find_spec

import pytest

from vit_plugin.importable import hide_packages


def run(code: str) -> str:
    """Run a program in a new process, and return the last line that it prints."""
    done = subprocess.run(
        [sys.executable, '-W', 'ignore', '-c', code], capture_output=True, text=True
    )
    assert not done.returncode, done.stderr
    return done.stdout.splitlines()[-1]


def test_hidden_package_cannot_be_imported(tmp_path, monkeypatch):
    (tmp_path / 'only_here.py').touch()
    monkeypatch.syspath_prepend(tmp_path)
    with hide_packages('only_here', 'json'):
        import json  # noqa: F401  which was imported before

        assert not find_spec('only_here')
        with pytest.raises(ImportError):
            import only_here
    import only_here  # noqa: F401

    monkeypatch.delitem(sys.modules, 'only_here')


@pytest.mark.nightly
def test_mmdetection_is_imported_only_for_detectors():
    pytest.importorskip('mmdet')
    code = (
        'import sys; from vit_plugin.importable import register_framework_models, make_importable\n'
        'make_importable(); register_framework_models("mmpretrain")\n'
        'before = ["mmdet" in sys.modules]\n'
        'register_framework_models("mmdet"); from mmdet.registry import MODELS\n'
        'print(*before, MODELS.get("ResLayerExtraNorm").__name__)'
    )
    assert run(code) == 'False ResLayerExtraNorm'


@pytest.mark.nightly
def test_transformers_is_imported_only_for_its_optimizers():
    pytest.importorskip('transformers')
    code = (
        'import sys; from vit_plugin.commands import frameworks\n'
        'from mmengine.registry import OPTIMIZERS\n'
        'from vit_plugin.importable import register_optimizer\n'
        'register_optimizer(dict(optimizer=dict(type="AdamW")))\n'
        'before = ["transformers" in sys.modules, OPTIMIZERS.get("Adafactor")]\n'
        'register_optimizer(dict(optimizer=dict(type="Adafactor")))\n'
        'print(*before, OPTIMIZERS.get("Adafactor").__module__)'
    )
    assert run(code).startswith('False None transformers.')
