"""Comments are sentences of an editor: plain statements that name their subject."""

import tokenize
from pathlib import Path

import pytest

FOLDERS = ('vit_plugin', 'anyfolder', 'benchmarks', 'tests', 'configs', 'tools')
# A comment that begins so leaves its subject to the code, or to the sentence before.
OPENINGS = ('Of', 'Which', 'Whose', 'Where', 'As', 'What', 'That is', 'That of')


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


@pytest.mark.parametrize('folder', FOLDERS)
def test_a_comment_names_its_subject(folder):
    wrong = [
        f'{path}:{line}: {text}'
        for path in sorted(Path(folder).rglob('*.py'))
        for line, text in comments(path)
        if text.startswith(tuple(f'{opening} ' for opening in OPENINGS))
    ]
    assert not wrong


def test_comments_are_found_where_they_begin(tmp_path):
    path = tmp_path / 'a.py'
    path.write_text("x = 1  # Of a line\n# Whose\n# Of the same block\ny = '# What'\n    \n# As\n")
    assert comments(path) == [(2, 'Whose'), (6, 'As')]
