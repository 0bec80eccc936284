"""The library works without torch, MMEngine and vit_plugin, and speaks of none of them."""

import re
import subprocess
import sys
from pathlib import Path

import anyfolder

ALONE = """
import importlib, pkgutil, sys

FOREIGN = ('torch', 'torchvision', 'timm', 'mmengine', 'mmcv', 'mmpretrain', 'mmdet', 'mmseg',
           'supervision', 'matplotlib', 'vit_plugin')

class Forbidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] in FOREIGN:
            raise AssertionError(f'anyfolder imports {name}')

sys.meta_path.insert(0, Forbidden())
import anyfolder
for module in pkgutil.walk_packages(anyfolder.__path__, 'anyfolder.'):
    if not module.name.startswith('anyfolder.tests'):
        importlib.import_module(module.name)
"""


def test_nothing_foreign_is_imported():
    root = str(Path(anyfolder.__file__).parents[1])
    subprocess.run([sys.executable, '-c', ALONE], check=True, env={'PATH': '', 'PYTHONPATH': root})


def test_the_readers_name_no_flags():
    """They say :func:`anyfolder.wording.option`, which each program around them words."""
    package = Path(anyfolder.__file__).parent
    flag = re.compile(r"""['" ]--[a-z]""")
    named = {
        f'{file.name}: {line.strip()}'
        for room in ('readers', 'layouts', 'pixels')
        for file in (package / room).rglob('*.py')
        for line in file.read_text().splitlines()
        if flag.search(line)
    }
    assert not named
