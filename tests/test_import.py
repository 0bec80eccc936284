"""Importing any module of the package changes nothing outside of it."""

import json
import pkgutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import vit_plugin

# All but vit_plugin.detection, which is imported for its documented effect: it replaces mmcv._ext.
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(vit_plugin.__path__, 'vit_plugin.')
    if not module.name.endswith('__main__') and not module.name.startswith('vit_plugin.detection')
)


TOP_LEVEL = sorted({name.split('.')[1] for name in MODULES})


@pytest.fixture(scope='module')
def changed() -> dict[str, dict]:
    """What importing the modules has changed, for each top-level package or module."""
    script = Path(__file__).with_name('support') / 'import_state.py'
    result = subprocess.run(
        [sys.executable, str(script), *MODULES], check=True, capture_output=True, text=True
    )
    return json.loads(result.stdout.splitlines()[-1])


@pytest.mark.parametrize('name', ['vit_plugin', *TOP_LEVEL])
def test_importing_changes_nothing_outside(changed, name):
    assert not changed.get(name)


HOSTS = ('mmpretrain', 'mmdet', 'mmseg')
# MMEngine imports transformers if it is installed, and that imports torchao.
TORCHAO = () if find_spec('transformers') else ('torchao',)
# Modules, and the packages that importing them does not import.
NOT_IMPORTED = {
    'vit_plugin; dir(vit_plugin)': ('torch', 'mmengine', 'timm', 'numpy', *HOSTS),
    # The test measures memory, most of which torch would take.
    'benchmarks.measuring.one_image': ('torch', 'mmengine'),
    'vit_plugin.engine, vit_plugin.report': ('matplotlib', *TORCHAO, *HOSTS),
    # A config imports vit_plugin.detection, and MMDetection, which MMPretrain imports, must find
    # its ops.
    'vit_plugin.commands.command_line, vit_plugin.data': HOSTS,
    # A command that trains nothing.
    'vit_plugin.commands.one_sentence, vit_plugin.inference.load': (
        'vit_plugin.engine.runner',
        'matplotlib',
        'transformers',
        *HOSTS,
    ),
}


@pytest.mark.parametrize(
    'modules',
    [
        pytest.param(names, marks=pytest.mark.nightly if 'commands' in names else ())
        for names in NOT_IMPORTED
    ],
)
def test_imports_leave_out_packages(modules):
    code = f'import sys, {modules}; print(*{{*{NOT_IMPORTED[modules]}}} & {{*sys.modules}})'
    done = subprocess.run([sys.executable, '-W', 'ignore', '-c', code], capture_output=True)
    assert done.stdout == b'\n', done
