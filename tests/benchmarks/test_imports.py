"""Every name that a benchmark imports from this repository exists. Tests run few benchmarks."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
IMPORT_PATHS = ('', 'tests', 'tests/support', 'anyfolder/tests/support')
BENCHMARKS = sorted((ROOT / 'benchmarks').rglob('*.py'))


def file_of(module: str) -> Path | None:
    """The file of a module of this repository, or None for another's."""
    for path in IMPORT_PATHS:
        base = ROOT / path / module.replace('.', '/')
        for file in (base.with_suffix('.py'), base / '__init__.py'):
            if file.is_file():
                return file
    return None


@cache
def names_in(file: Path) -> set[str]:
    """The names that a file defines or imports, at any level."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names.update(alias.asname or alias.name for alias in node.names)
    return names


def missing_in(source: str) -> Iterator[str]:
    """The imported names that do not exist, as ``module.name``."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.ImportFrom) or not (file := file_of(node.module or '')):
            continue
        # Packages with a `__getattr__` import their names when they are used.
        known = names_in(file)
        for alias in node.names:
            name = f'{node.module}.{alias.name}'
            if not {alias.name, '__getattr__'} & known and not file_of(name):
                yield name


@pytest.mark.parametrize('file', BENCHMARKS, ids=lambda file: file.stem)
def test_imported_names_exist(file):
    assert not [*missing_in(file.read_text())]


def test_a_missing_name_is_found():
    assert [*missing_in('from test_house import OF_NOTHING, SHELLS')] == ['test_house.OF_NOTHING']
    assert not [*missing_in('from pathlib import Nothing')]
