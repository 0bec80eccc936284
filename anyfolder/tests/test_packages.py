"""The library's own wheel has all of its folders."""

import re
from pathlib import Path

import anyfolder

PACKAGE = Path(anyfolder.__file__).parent
PROJECT = PACKAGE / 'pyproject.toml'


def test_every_folder_of_code_is_in_the_wheel():
    if not PROJECT.is_file():  # an installed library has no pyproject.toml
        return
    folders = (file.parent.relative_to(PACKAGE) for file in PACKAGE.rglob('__init__.py'))
    packages = {'.'.join(('anyfolder', *folder.parts)) for folder in folders}
    [listed] = re.findall(r'^packages = \[(.*?)\]', PROJECT.read_text(), re.MULTILINE | re.DOTALL)
    assert {*re.findall(r'"([^"]+)"', listed)} == {
        name for name in packages if '.tests' not in name
    }
