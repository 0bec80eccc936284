"""List the campaigns, or run one.

    python benchmarks [NAME [ARGUMENTS...]]

A campaign measures or tries something that takes too long, or too many resources, for the tests.
"""

import ast
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
HELPERS = tuple(  # the same as in pyproject.toml for the tests
    HERE.parent / path for path in ('', 'tests', 'tests/support', 'anyfolder/tests/support')
)


def campaigns() -> dict[str, Path]:
    """The files of campaigns by name. Other programs do not say how to start them by their name."""
    return {
        path.stem: path
        for path in sorted(HERE.glob('*.py'))
        if not path.name.startswith(('test_', '__'))
        and f'python benchmarks {path.stem}' in (text := path.read_text())
        and "if __name__ == '__main__':" in text
    }


def main() -> None:
    files = campaigns()
    name, *arguments = sys.argv[1:] or ['']
    if name in files:
        inherited = os.environ.get('PYTHONPATH')
        paths = [*map(str, HELPERS), *([inherited] if inherited else [])]
        os.environ['PYTHONPATH'] = os.pathsep.join(paths)
        os.execv(sys.executable, [sys.executable, str(files[name]), *arguments])
    for campaign, path in files.items():
        summary = (ast.get_docstring(ast.parse(path.read_text())) or '').partition('\n\n')[0]
        print(f'{campaign:<16}', summary.replace('\n', ' '))
    if name:
        sys.exit(f'There is no campaign {name!r}.')


if __name__ == '__main__':
    main()
