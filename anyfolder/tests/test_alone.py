"""The library imports no framework and no vit_plugin, and its readers name no flags."""

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


def test_library_imports_no_framework():
    root = str(Path(anyfolder.__file__).parents[1])
    subprocess.run([sys.executable, '-c', ALONE], check=True, env={'PATH': '', 'PYTHONPATH': root})


def test_readers_name_no_flags():
    """They call :func:`anyfolder.wording.option`, so that each program can name its own."""
    package = Path(anyfolder.__file__).parent
    flag = re.compile(r"""['" ]--[a-z]""")
    lines_with_flags = {
        f'{file.name}: {line.strip()}'
        for folder in ('readers', 'layouts', 'pixels')
        for file in (package / folder).rglob('*.py')
        for line in file.read_text().splitlines()
        if flag.search(line)
    }
    assert not lines_with_flags
