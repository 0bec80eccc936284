"""From a file to a config."""

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
    path = tmp_path / 'config.py'
    path.write_text(
        "custom_imports = dict(imports=['mine', 'vit_plugin.detection'])\nmodel = dict(type='A')\n"
    )
    read_config(str(path))
    assert order == [(['vit_plugin.detection', 'mine', 'vit_plugin.detection'], False)]


def test_a_module_that_is_not_there_is_a_sentence(tmp_path):
    path = tmp_path / 'config.py'
    path.write_text("custom_imports = dict(imports=['mine'])\nmodel = dict(type='A')\n")
    with rejects('Failed to import mine'):
        read_config(str(path))
