"""Importing any module of the package changes nothing outside of it."""

import json
import pkgutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import vit_plugin

# vit_plugin.detection is imported for its effect, to stand in for mmcv._ext; it is the one that
# says so.
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(vit_plugin.__path__, 'vit_plugin.')
    if not module.name.endswith('__main__') and not module.name.startswith('vit_plugin.detection')
)


ROOMS = sorted({name.split('.')[1] for name in MODULES})


@pytest.fixture(scope='module')
def changed() -> dict[str, dict]:
    """Room -> what the imports of its modules have changed."""
    script = Path(__file__).with_name('support') / 'import_state.py'
    result = subprocess.run(
        [sys.executable, str(script), *MODULES], check=True, capture_output=True, text=True
    )
    return json.loads(result.stdout.splitlines()[-1])


@pytest.mark.parametrize('room', ['vit_plugin', *ROOMS])
def test_importing_changes_nothing_outside(changed, room):
    assert not changed.get(room)


HOSTS = ('mmpretrain', 'mmdet', 'mmseg')
# Packages that an import leaves to those who need them. MMEngine imports transformers where it is
# installed, and that imports torchao.
TORCHAO = () if find_spec('transformers') else ('torchao',)
LEFT = {
    'vit_plugin; dir(vit_plugin)': ('torch', 'mmengine', 'timm', 'numpy', *HOSTS),
    # Its memory would be that of torch.
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
    [pytest.param(row, marks=pytest.mark.nightly if 'commands' in row else ()) for row in LEFT],
)
def test_what_an_import_leaves_out(modules):
    code = f'import sys, {modules}; print(*{{*{LEFT[modules]}}} & {{*sys.modules}})'
    done = subprocess.run([sys.executable, '-W', 'ignore', '-c', code], capture_output=True)
    assert done.stdout == b'\n', done
