import importlib
import sys

import mmengine.registry
import pytest
from mmengine.runner import CheckpointLoader

from vit_plugin.errors import needed_by


@pytest.mark.parametrize(('missing', 'module', 'words'), [
    *(('mmengine', f'vit_plugin.{name}', 'vit_plugin needs mmengine')
      for name in ('registry', 'models', 'engine.launch', 'data', 'weights')),
    ('mmcv', 'vit_plugin.detection', 'vit_plugin.detection needs mmcv'),
    ('mmpretrain', 'vit_plugin.models.heads.vit_head', 'ViTClsHead needs mmpretrain')])
def test_a_missing_framework_is_named_with_its_extra(monkeypatch, missing, module, words):
    forget(monkeypatch, missing)
    with pytest.raises(ImportError, match=f"{words}.*pip install 'vit_plugin\\[onedl\\]'"):
        importlib.import_module(module)


def test_a_backbone_needs_no_mmpretrain(monkeypatch):
    forget(monkeypatch, 'mmpretrain')
    models = importlib.import_module('vit_plugin.models')
    assert 'ViTClsHead' not in models.__all__
    with pytest.raises(ImportError, match='ViTClsHead needs mmpretrain'):
        models.ViTClsHead  # noqa: B018


def forget(monkeypatch, missing: str) -> None:
    """Make a package impossible to import, and ours unimported."""
    for root in vars(mmengine.registry).values():
        if isinstance(root, mmengine.registry.Registry):
            monkeypatch.delitem(root._children, 'vit_plugin', raising=False)
    monkeypatch.setattr(CheckpointLoader, '_schemes', dict(CheckpointLoader._schemes))
    for name in [name for name in sys.modules if name.split('.')[0] in (missing, 'vit_plugin')]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, 'meta_path', [Blocker(missing), *sys.meta_path])


def test_other_missing_modules_are_left_alone():
    with pytest.raises(ModuleNotFoundError, match="No module named 'no_such_module'"), needed_by('This'):
        import no_such_module  # noqa: F401


class Blocker:
    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] == self.package:
            raise ModuleNotFoundError(f'No module named {name!r}', name=name)
