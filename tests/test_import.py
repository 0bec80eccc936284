"""Importing any module of the package changes nothing outside of it."""

import json
import pkgutil
import subprocess
import sys
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


def test_the_parts_of_a_run_draw_nothing_yet():
    code = (
        'import sys, vit_plugin.engine, vit_plugin.report; '
        "print([name for name in ('matplotlib', 'mmpretrain', 'mmdet', 'torchao') "
        'if name in sys.modules])'
    )
    done = subprocess.run(
        [sys.executable, '-W', 'ignore', '-c', code], check=True, capture_output=True, text=True
    )
    assert done.stdout == '[]\n'
