"""Comments are plain statements that name their subject, and a name means one thing."""

import ast
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

FOLDERS = ('vit_plugin', 'anyfolder', 'benchmarks', 'tests', 'configs', 'tools')
# A comment that begins with one of these words leaves its subject to the code around it.
OPENINGS = ('Of', 'Which', 'Whose', 'Where', 'As', 'What', 'That is', 'That of', 'Those')
# A docstring that begins with one of these does not name what the function returns or the class is.
DOC_OPENINGS = ('Of', 'That of', 'Those of', 'The same of', 'What is', 'What was', 'By')
# Public names that several modules of the package may define -> what each stands for.
SHARED_NAMES = {
    'PROJECT': 'the declaration of each project',
    'add_arguments': 'the flags of each command',
    'check': 'the early check of each command',
    'main': 'the entry of each command',
    'LESS_MEMORY': 'the remedy of each command',
}


def block_comments(path: Path) -> list[tuple[int, str]]:
    """Line and text of the first line of each comment block."""
    starts, last_line = [], -1
    with tokenize.open(path) as file:
        for token in tokenize.generate_tokens(file.readline):
            if token.type == tokenize.COMMENT and token.line.lstrip().startswith('#'):
                if token.start[0] != last_line + 1:
                    starts.append((token.start[0], token.string.lstrip('# ')))
                last_line = token.start[0]
    return starts


def trailing_comments(path: Path) -> list[tuple[int, str]]:
    """Line and text of each comment that follows code on the same line."""
    with tokenize.open(path) as file:
        return [
            (token.start[0], token.string.lstrip('# '))
            for token in tokenize.generate_tokens(file.readline)
            if token.type == tokenize.COMMENT and not token.line.lstrip().startswith('#')
        ]


def public_names(tree: ast.Module) -> Iterator[str]:
    """The functions, classes and upper-case constants at a module's top level."""
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
        yield from (
            name.id
            for target in targets
            for name in ast.walk(target)
            if isinstance(name, ast.Name) and name.id.isupper()
        )


@pytest.mark.parametrize('folder', FOLDERS)
def test_a_comment_names_its_subject(folder):
    wrong = [
        f'{path}:{line}: {text}'
        for path in sorted(Path(folder).rglob('*.py'))
        for line, text in block_comments(path)
        if text.startswith(tuple(f'{opening} ' for opening in OPENINGS))
    ]
    assert not wrong


@pytest.mark.parametrize('folder', ['vit_plugin', 'anyfolder', 'benchmarks', 'tools'])
def test_a_docstring_names_its_subject(folder):
    documented = ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef
    wrong = [
        f'{path}: {text}'
        for path in sorted(Path(folder).rglob('*.py'))
        if 'tests' not in path.parts
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, documented)
        and (text := (ast.get_docstring(node) or '').partition('\n')[0])
        if text.startswith(tuple(f'{opening} ' for opening in DOC_OPENINGS))
    ]
    assert not wrong


@pytest.mark.parametrize('folder', ['vit_plugin', 'anyfolder'])
def test_a_trailing_comment_names_its_subject(folder):
    wrong = [
        f'{path}:{line}: {text}'
        for path in sorted(Path(folder).rglob('*.py'))
        if 'tests' not in path.parts
        for line, text in trailing_comments(path)
        if text.startswith(tuple(f'{opening.lower()} ' for opening in OPENINGS))
    ]
    assert not wrong


def test_a_public_name_is_defined_once():
    modules = defaultdict(set)
    for path in Path('vit_plugin').rglob('*.py'):
        if path.name != '__init__.py' or path.parent.parent.name == 'projects':
            for name in public_names(ast.parse(path.read_text())):
                modules[name].add(str(path))
    shared = {
        name: sorted(paths)
        for name, paths in modules.items()
        if len(paths) > 1 and not re.match('_|test', name)
    }
    assert {name: paths for name, paths in shared.items() if name not in SHARED_NAMES} == {}
    assert {*SHARED_NAMES} == {*shared}


def test_each_comment_block_is_reported_once(tmp_path):
    path = tmp_path / 'a.py'
    path.write_text("x = 1  # Of a line\n# Whose\n# Of the same block\ny = '# What'\n    \n# As\n")
    assert block_comments(path) == [(2, 'Whose'), (6, 'As')]
    assert trailing_comments(path) == [(1, 'Of a line')]


def test_public_names_exclude_imported_and_nested_names():
    text = 'from a import B\nC, _d = 1, 2\nE: int = 3\ndef f():\n    G = 4\nclass H:\n    I = 5\n'
    assert [*public_names(ast.parse(text))] == ['C', 'E', 'f', 'H']
