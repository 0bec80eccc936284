import importlib
import sys

import pytest

from vit_plugin.errors import needed_by


@pytest.mark.parametrize(('missing', 'module', 'words'), [
    ('mmengine', 'vit_plugin.registry', 'vit_plugin needs mmengine'),
    ('mmpretrain', 'vit_plugin.models.heads.vit_head', 'ViTClsHead needs mmpretrain')])
def test_a_missing_framework_is_named_with_its_extra(monkeypatch, missing, module, words):
    for name in [name for name in sys.modules if name.split('.')[0] == missing or name == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, 'meta_path', [Blocker(missing), *sys.meta_path])
    with pytest.raises(ImportError, match=f"{words}.*pip install 'vit_plugin\\[onedl\\]'"):
        importlib.import_module(module)


def test_other_missing_modules_are_left_alone():
    with pytest.raises(ModuleNotFoundError, match="No module named 'no_such_module'"), needed_by('This'):
        import no_such_module  # noqa: F401


class Blocker:
    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] == self.package:
            raise ModuleNotFoundError(f'No module named {name!r}', name=name)
