"""Budgets of the house, in code tokens without comments and docstrings.

Raising one is a commit that says why.
"""

import ast
import io
import tokenize
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from test_house import FOLDERS, SHELLS

LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
BUDGETS = {  # the most that it may have, and where it should get
    'kernel': (139_250, 105_000),
    **dict.fromkeys(FOLDERS, (5_000, 5_000)),
    'inference': (15_000, 9_500),
    'from_folder': (57_000, 27_000),
    'report': (22_500, 18_000),
    'deploy': (15_100, 11_000),
    'measure': (12_250, 12_000),
    'commands': (13_250, 10_000),
    'tests': (362_000, 240_000),
    'wheel': (324_250, 220_000),
}


# Since Python 3.12 a string with values in it is several tokens.
STARTS, ENDS = (
    {getattr(tokenize, f'{kind}STRING_{end}', None) for kind in 'FT'} for end in ('START', 'END')
)


def tokens(code: str) -> int:
    """The tokens of a file that a reader of its code reads."""
    docstrings = {
        line
        for node in ast.walk(ast.parse(code))
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None
        for line in range(node.body[0].lineno, node.body[0].end_lineno + 1)
    }
    count = within = 0
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        within -= token.type in ENDS
        count += not within and token.type not in LAYOUT and token.start[0] not in docstrings
        within += token.type in STARTS
        count -= token.type in STARTS and within == 1  # its end counts
    return count


def places(path: Path) -> tuple[str, ...]:
    """The budgets that a file counts for."""
    top, *inside = path.parts
    if top != 'vit_plugin':
        return ('wheel',) if top == 'tools' else (top,)
    folder = inside[0]
    if folder == 'projects' and len(inside) > 2:
        return 'wheel', inside[1]
    return 'wheel', folder if folder in SHELLS else 'kernel'


@cache
def sizes() -> Counter[str]:
    found: Counter[str] = Counter()
    for top in ('vit_plugin', 'tools', 'tests'):
        for path in Path(top).rglob('*.py'):
            if '.mim' not in path.parts:
                found.update(dict.fromkeys(places(path), tokens(path.read_text())))
    return found


def test_comments_docstrings_and_layout_are_free():
    code = '"""Says."""\n\n\ndef f(x):\n    """Says."""\n    return x  # why\n'
    assert tokens(code) == tokens('def f(x): return x') == 8
    assert tokens("x = f'{x + 1} of {f(y)}'") == tokens("x = 'x'") == 3


@pytest.mark.parametrize('place', BUDGETS)
def test_budget(place):
    assert sizes()[place] <= BUDGETS[place][0]


def test_every_folder_has_a_budget():
    assert {*sizes()} == {*BUDGETS}
