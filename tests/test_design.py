"""The plan of the code in docs/design.md matches the code."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path('vit_plugin')
PLAN = Path('docs/design.md').read_text().split('```')[1]
ENTRY = r'^  ([a-z_]+)/?(?: |$)'  # a top-level package or module in the plan
ENTRIES = re.findall(ENTRY, PLAN, re.MULTILINE)
# The text of each entry; re.split gives the text before the first, then name, text, name, text...
SECTIONS = dict(zip(ENTRIES, re.split(ENTRY, PLAN, flags=re.MULTILINE)[2::2], strict=True))


def imported(file: Path) -> Iterator[str]:
    """The top-level packages and modules of vit_plugin that a file imports from."""
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


def test_every_top_level_module_is_in_the_plan():
    entries = {
        path.stem
        for path in PACKAGE.iterdir()
        if path.suffix == '.py' or (path / '__init__.py').is_file()
    }
    assert entries - {'__init__'} == set(ENTRIES)


@pytest.mark.parametrize(
    'entry',
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
def test_a_section_lists_the_files_of_its_folder(entry):
    """Names at the start of a line exist, and each file and folder directly inside is named."""
    listed = re.findall(r'\n    (\w+(?:, \w+)*)', SECTIONS[entry])
    inside = {
        path.stem for path in (PACKAGE / entry).rglob('*') if path.suffix == '.py' or path.is_dir()
    }
    assert not {name for line in listed for name in line.split(', ')} - inside
    direct = {path.stem for path in (PACKAGE / entry).iterdir() if not path.name.startswith('__')}
    assert not direct - set(re.findall(r'\w+', SECTIONS[entry]))


def test_file_names_are_unique():
    # Modules of commands are named after their command, and may share that name.
    names = Counter(
        path.name
        for path in PACKAGE.rglob('*.py')
        if not path.name.startswith('__') and path.parent.name != 'commands'
    )
    assert not {name for name, count in names.items() if count > 1}


def test_imports_only_go_down():
    upward = set()
    for file in PACKAGE.rglob('*.py'):
        entry = file.relative_to(PACKAGE).parts[0].removesuffix('.py')
        if entry in ENTRIES:  # not vit_plugin/__init__.py, which only imports inside functions
            upward |= {
                f'{file} imports {other}'
                for other in imported(file)
                if other in ENTRIES and ENTRIES.index(other) < ENTRIES.index(entry)
            }
    assert not upward


def test_only_vit_calls_patch_embed_and_embed():
    """Other modules call ``begin`` or ``features``, which subclasses may override."""
    steps = {'patch_embed', 'embed'}
    callers = {
        file.name
        for file in PACKAGE.rglob('*.py')
        if steps
        <= {
            node.func.attr
            for node in ast.walk(ast.parse(file.read_text()))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        }
    }
    assert callers == {'vit.py'}
