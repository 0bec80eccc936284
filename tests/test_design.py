"""The plan of the code in docs/design.md is the code."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path('vit_plugin')
PLAN = Path('docs/design.md').read_text().split('```')[1]
ROOMS = re.findall(r'^  (\w+)/?(?: |$)', PLAN, re.MULTILINE)


SECTIONS = dict(zip(ROOMS, re.split(r'^  \w+/?(?: |$)', PLAN, flags=re.MULTILINE)[1:], strict=True))


def imported(file: Path) -> Iterator[str]:
    """The rooms of the package that a file imports from."""
    package = ('vit_plugin', *file.relative_to(PACKAGE).parent.parts)
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name.split('.') for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = [*package[: len(package) - node.level + 1]] if node.level else []
            module += node.module.split('.') if node.module else []
            names = [[*module, alias.name] for alias in node.names]
        else:
            continue
        yield from (name[1] for name in names if name[0] == 'vit_plugin' and len(name) > 1)


def test_every_room_is_in_the_plan():
    rooms = {
        path.stem
        for path in PACKAGE.iterdir()
        if path.suffix == '.py' or (path / '__init__.py').is_file()
    }
    assert rooms - {'__init__'} == set(ROOMS)


@pytest.mark.parametrize('room', ['apps', 'config', 'engine', 'files', 'passes'])
def test_a_room_is_its_files(room):
    """What begins a line of a room is there, and each of its files and folders is named."""
    begins = re.findall(r'^    (\w+(?:, \w+)*)', SECTIONS[room], re.MULTILINE)
    inside = {
        path.stem for path in (PACKAGE / room).rglob('*') if path.suffix == '.py' or path.is_dir()
    }
    assert not {name for line in begins for name in line.split(', ')} - inside
    here = {path.stem for path in (PACKAGE / room).iterdir() if not path.name.startswith('__')}
    assert not here - set(re.findall(r'\w+', SECTIONS[room]))


def test_a_file_has_a_name_of_its_own():
    names = Counter(path.name for path in PACKAGE.rglob('*.py') if not path.name.startswith('__'))
    # The one for pipelines in `data`, and the one for paths in `files`: both are in users' code.
    assert {name for name, count in names.items() if count > 1} == {'images.py'}


def test_imports_only_go_down():
    upward = set()
    for file in PACKAGE.rglob('*.py'):
        room, *inside = file.relative_to(PACKAGE).with_suffix('').parts
        # The package itself only has functions that import when they are called. What is in the
        # folder of a project stands on all other rooms, see test_house.py.
        if room in ROOMS and (room != 'projects' or inside == ['__init__']):
            upward |= {
                f'{file} imports {other}'
                for other in imported(file)
                if other in ROOMS and ROOMS.index(other) < ROOMS.index(room)
            }
    assert not upward


def test_only_the_backbone_begins_its_forward():
    """Others call its ``begin`` or ``features``, which subclasses may override."""
    steps = {'patch_embed', 'embed'}
    begins = {
        file.name
        for file in PACKAGE.rglob('*.py')
        if steps
        <= {
            node.func.attr
            for node in ast.walk(ast.parse(file.read_text()))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        }
    }
    assert begins == {'vit.py'}
