"""The plan of the code in docs/design.md is the code."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path('vit_plugin')
PLAN = Path('docs/design.md').read_text().split('```')[1]
ROOM = r'^  ([a-z_]+)/?(?: |$)'
ROOMS = re.findall(ROOM, PLAN, re.MULTILINE)


SECTIONS = dict(zip(ROOMS, re.split(ROOM, PLAN, flags=re.MULTILINE)[2::2], strict=True))


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


@pytest.mark.parametrize(
    'room',
    [
        'commands',
        'config',
        'deploy',
        'engine',
        'files',
        'from_folder',
        'inference',
        'measure',
        'passes',
        'projects',
        'report',
        'tasks',
    ],
)
def test_a_room_is_its_files(room):
    """What begins a line of a room is there, and each of its files and folders is named."""
    begins = re.findall(r'\n    (\w+(?:, \w+)*)', SECTIONS[room])
    inside = {
        path.stem for path in (PACKAGE / room).rglob('*') if path.suffix == '.py' or path.is_dir()
    }
    assert not {name for line in begins for name in line.split(', ')} - inside
    here = {path.stem for path in (PACKAGE / room).iterdir() if not path.name.startswith('__')}
    assert not here - set(re.findall(r'\w+', SECTIONS[room]))


def test_a_file_has_a_name_of_its_own():
    # A command's module has the name of the command.
    names = Counter(
        path.name
        for path in PACKAGE.rglob('*.py')
        if not path.name.startswith('__') and path.parent.name != 'commands'
    )
    assert not {name for name, count in names.items() if count > 1}


def test_imports_only_go_down():
    upward = set()
    for file in PACKAGE.rglob('*.py'):
        room = file.relative_to(PACKAGE).parts[0].removesuffix('.py')
        if room in ROOMS:  # the package itself only has functions that import when they are called
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
