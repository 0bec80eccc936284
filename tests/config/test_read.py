"""Read configs that are Python files."""

import sys
from pathlib import Path

import pytest
from mmengine.config import Config
from mmengine.config.utils import MODULE2PACKAGE
from rejection import rejects

from vit_plugin.config import apply_loader_defaults, read_config


def test_reading_a_config_keeps_mmengines_table_of_packages(tmp_path):
    before = dict(MODULE2PACKAGE)
    read_config('configs/vit/vit-mini-p2_1xb16_digits.py')
    (tmp_path / 'wrong.py').write_text('model = (')
    with rejects(r"wrong.py' cannot be read \(SyntaxError: .*line 1.*\); correct it"):
        read_config(str(tmp_path / 'wrong.py'))
    assert before == MODULE2PACKAGE


def test_our_ops_are_imported_first(tmp_path, monkeypatch):
    """Another module may import MMDetection, which needs the ops at its import."""
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


@pytest.mark.parametrize('folder', ['.', 'project'])
def test_modules_next_to_the_config_and_in_the_working_directory_are_imported(
    tmp_path, monkeypatch, folder
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr('sys.path', [*sys.path])
    name = f'mine_{Path(folder).name}'
    monkeypatch.delitem(sys.modules, name, raising=False)
    Path('project').mkdir()
    Path(folder, f'{name}.py').write_text('')
    Path('project/config.py').write_text(
        f"custom_imports = dict(imports=['{name}'])\nmodel = dict(type='A')\n"
    )
    read_config('project/config.py')
    assert Path(sys.modules[name].__file__).resolve().parent == (tmp_path / folder).resolve()


def test_missing_modules_raise(tmp_path):
    path = tmp_path / 'config.py'
    path.write_text("custom_imports = dict(imports=['mine'])\nmodel = dict(type='A')\n")
    with rejects("imports 'mine', and no such module is installed.*put its folder into PYTHONPATH"):
        read_config(str(path))


def test_wrong_loaders_are_left_to_the_check_of_the_config():
    cfg = Config(dict(train_dataloader=dict(num_workers='many'), val_dataloader=3))
    apply_loader_defaults(cfg)
    assert cfg.train_dataloader.num_workers == 'many'
    assert cfg.val_dataloader == 3
