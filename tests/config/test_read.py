"""From a file to a config."""

import sys
from pathlib import Path

import pytest
from mmengine.config.utils import MODULE2PACKAGE
from rejection import rejects

from vit_plugin.config import read_config


def test_reading_a_config_leaves_mmengines_table_of_hosts_alone(tmp_path):
    before = dict(MODULE2PACKAGE)
    read_config('configs/vit/vit-mini-p2_1xb16_digits.py')
    (tmp_path / 'wrong.py').write_text('model = (')
    with rejects(r"wrong.py' cannot be read \(SyntaxError: .*line 1.*\); correct it"):
        read_config(str(tmp_path / 'wrong.py'))
    assert before == MODULE2PACKAGE


def test_the_ops_of_detectors_are_imported_first(tmp_path, monkeypatch):
    """A project's own module may import MMDetection, which looks for its ops then."""
    order = []
    monkeypatch.setattr(
        'vit_plugin.config.read.import_modules_from_strings', lambda *a: order.append(a)
    )
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / 'mine.py').write_text('')
    path = tmp_path / 'config.py'
    path.write_text(
        "custom_imports = dict(imports=['mine', 'vit_plugin.detection'])\nmodel = dict(type='A')\n"
    )
    read_config(str(path))
    assert order == [(['vit_plugin.detection', 'mine', 'vit_plugin.detection'], False)]


@pytest.mark.parametrize('place', ['.', 'project'])
def test_a_module_beside_the_config_or_in_the_working_directory_is_found(
    tmp_path, monkeypatch, place
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr('sys.path', [*sys.path])
    name = f'mine_{Path(place).name}'
    monkeypatch.delitem(sys.modules, name, raising=False)
    Path('project').mkdir()
    Path(place, f'{name}.py').write_text('')
    Path('project/config.py').write_text(
        f"custom_imports = dict(imports=['{name}'])\nmodel = dict(type='A')\n"
    )
    read_config('project/config.py')
    assert Path(sys.modules[name].__file__).resolve().parent == (tmp_path / place).resolve()


def test_a_module_that_is_not_there_is_a_sentence(tmp_path):
    path = tmp_path / 'config.py'
    path.write_text("custom_imports = dict(imports=['mine'])\nmodel = dict(type='A')\n")
    with rejects("imports 'mine', and no such module is installed.*put its folder into PYTHONPATH"):
        read_config(str(path))
