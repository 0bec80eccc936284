"""Comments are plain statements that name their subject, and a name means one thing."""

import ast
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

FOLDERS = ('vit_plugin', 'anyfolder', 'benchmarks', 'tests', 'configs', 'tools')
# A comment that begins so leaves its subject to the code, or to the sentence before.
OPENINGS = ('Of', 'Which', 'Whose', 'Where', 'As', 'What', 'That is', 'That of', 'Those')
# A docstring that begins so names nothing that the function returns or the class is.
DOC_OPENINGS = ('Of', 'That of', 'Those of', 'The same of', 'What is', 'What was', 'By')
# Public names that several modules of the package define, and why they may.
SHARED_NAMES = {
    'PROJECT': 'the declaration of each project',
    'add_arguments': 'the flags of each command',
    'check': 'the early check of each command',
    'main': 'the entry of each command',
    'LESS_MEMORY': 'the remedy of each command',
}


def comments(path: Path) -> list[tuple[int, str]]:
    """Line and text of each comment that has a line of its own and begins a block."""
    found, last = [], -1
    with tokenize.open(path) as file:
        for token in tokenize.generate_tokens(file.readline):
            if token.type == tokenize.COMMENT and token.line.lstrip().startswith('#'):
                if token.start[0] != last + 1:
                    found.append((token.start[0], token.string.lstrip('# ')))
                last = token.start[0]
    return found


def remarks(path: Path) -> list[tuple[int, str]]:
    """Line and text of each comment that follows code on its line."""
    with tokenize.open(path) as file:
        return [
            (token.start[0], token.string.lstrip('# '))
            for token in tokenize.generate_tokens(file.readline)
            if token.type == tokenize.COMMENT and not token.line.lstrip().startswith('#')
        ]


def defined(tree: ast.Module) -> Iterator[str]:
    """The public names that a module defines itself: constants, functions and classes."""
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
        yield from (
            name.id
            for one in targets
            for name in ast.walk(one)
            if isinstance(name, ast.Name) and name.id.isupper()
        )


@pytest.mark.parametrize('folder', FOLDERS)
def test_a_comment_names_its_subject(folder):
    wrong = [
        f'{path}:{line}: {text}'
        for path in sorted(Path(folder).rglob('*.py'))
        for line, text in comments(path)
        if text.startswith(tuple(f'{opening} ' for opening in OPENINGS))
    ]
    assert not wrong


@pytest.mark.parametrize('folder', ['vit_plugin', 'anyfolder', 'benchmarks', 'tools'])
def test_a_docstring_names_its_subject(folder):
    kinds = ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef
    wrong = [
        f'{path}: {text}'
        for path in sorted(Path(folder).rglob('*.py'))
        if 'tests' not in path.parts
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, kinds) and (text := (ast.get_docstring(node) or '').partition('\n')[0])
        if text.startswith(tuple(f'{opening} ' for opening in DOC_OPENINGS))
    ]
    assert not wrong


@pytest.mark.parametrize('folder', ['vit_plugin', 'anyfolder'])
def test_a_remark_beside_code_names_its_subject(folder):
    wrong = [
        f'{path}:{line}: {text}'
        for path in sorted(Path(folder).rglob('*.py'))
        if 'tests' not in path.parts
        for line, text in remarks(path)
        if text.startswith(tuple(f'{opening.lower()} ' for opening in OPENINGS))
    ]
    assert not wrong


def test_a_public_name_is_defined_once():
    modules = defaultdict(set)
    for path in Path('vit_plugin').rglob('*.py'):
        if path.name != '__init__.py' or path.parent.parent.name == 'projects':
            for name in defined(ast.parse(path.read_text())):
                modules[name].add(str(path))
    several = {
        name: sorted(paths)
        for name, paths in modules.items()
        if len(paths) > 1 and not re.match('_|test', name)
    }
    assert {name: paths for name, paths in several.items() if name not in SHARED_NAMES} == {}
    assert {*SHARED_NAMES} == {*several}


def test_comments_are_found_where_they_begin(tmp_path):
    path = tmp_path / 'a.py'
    path.write_text("x = 1  # Of a line\n# Whose\n# Of the same block\ny = '# What'\n    \n# As\n")
    assert comments(path) == [(2, 'Whose'), (6, 'As')]
    assert remarks(path) == [(1, 'Of a line')]


def test_names_are_those_of_the_module_itself():
    text = 'from a import B\nC, _d = 1, 2\nE: int = 3\ndef f():\n    G = 4\nclass H:\n    I = 5\n'
    assert [*defined(ast.parse(text))] == ['C', 'E', 'f', 'H']
