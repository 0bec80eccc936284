"""The library's own wheel has all of its folders."""

import re
from pathlib import Path

import anyfolder

PACKAGE = Path(anyfolder.__file__).parent
PROJECT = PACKAGE / 'pyproject.toml'


def test_every_folder_of_code_is_in_the_wheel():
    if not PROJECT.is_file():  # installed, it has no project
        return
    places = (file.parent.relative_to(PACKAGE) for file in PACKAGE.rglob('__init__.py'))
    found = {'.'.join(('anyfolder', *place.parts)) for place in places}
    [listed] = re.findall(r'^packages = \[(.*?)\]', PROJECT.read_text(), re.MULTILINE | re.DOTALL)
    assert {*re.findall(r'"([^"]+)"', listed)} == {name for name in found if '.tests' not in name}
