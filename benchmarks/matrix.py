r"""Install, train and test the package with every supported Python and version of the frameworks.

    python benchmarks matrix --pythons ~/.pyenv/versions --uv      # all rows
    python benchmarks matrix --pythons ~/.pyenv/versions \
        --only 3.13-onedl-newest 3.12-openmmlab
    python benchmarks matrix --uv --only latest    # every night

A row is a Python, a line of frameworks (the forks of OneDL, OpenMMLab's own packages, or MMEngine
alone) and a choice of versions: those of tests/constraints.txt (newest), of tests/oldest.txt
(oldest), or any (latest). It installs as the README says, in a virtual environment of its own and a
copy of the tree, which take 6 GB until they are deleted. It trains the digits recipe for an epoch
and runs some tests; with MMEngine alone, it runs benchmarks/mmengine_alone.py in their place. With
``--uv``, uv installs in place of pip, and rows share the files of equal packages.

It prints a line for each row, and a table at the end. The status is 1 if a row fails; its output is
in DIR/<row>.log.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
CONFIG = 'configs/hybrid_vit/hybrid-vit-mini-p2_1xb16_digits.py'
TESTS = [
    'tests/models/backbones/test_vit.py',
    'tests/weights/test_formats.py',
    'tests/engine/test_runner.py',
    'tests/test_registry.py',
    'tests/test_arch.py',
    'tests/engine/test_lora_adapters.py',  # where its extra is installed
]
ALONE = 'mmengine'  # the line without other frameworks
NEEDED_BY_TESTS = ['pytest', 'pytest-xdist', 'hypothesis', 'scipy', 'scikit-learn']
CONSTRAINTS = dict(
    newest=['-c', 'tests/constraints.txt'], oldest=['-c', 'tests/oldest.txt'], latest=[]
)
UNBOUNDED_EXTRAS = dict(latest=['lora'])  # extras whose requirements have no bounds
VERSIONS_SCRIPT = (
    'import importlib, sys; '
    'print(*(importlib.import_module(name).__version__ for name in sys.argv[1:]))'
)


class Row(NamedTuple):
    """A Python, a line of frameworks (an extra of setup.py), and a key of :data:`CONSTRAINTS`."""

    python: str
    line: str
    versions: str

    def __str__(self) -> str:
        return '-'.join(self)


PYTHONS = ('3.10', '3.11', '3.12', '3.13', '3.14')
ROWS = [
    Row(python, line, versions)
    for python in PYTHONS
    for line in ('onedl', 'openmmlab')
    for versions in ('newest', 'oldest')
    # Upstream's MMEngine calls pkgutil.find_loader, which 3.14 lacks.
    if (python, line) != ('3.14', 'openmmlab')
] + [
    *(Row(python, ALONE, 'newest') for python in PYTHONS),
    *(Row('3.13', line, 'latest') for line in ('onedl', ALONE)),
]


class Result(NamedTuple):
    """The outcome of a row."""

    versions: str  # of torch, mmengine and mmcv
    done: list[str]  # the steps that passed
    failed: str  # the step that failed, or ''
    tests: str  # the last line of pytest
    minutes: float


def interpreter(folder: Path | None, version: str) -> Path:
    """The newest Python of this version in the folder of ``--pythons``, or the one on PATH."""
    if folder:
        found = folder.glob(f'{version}.*/bin/python{version}')
        candidates = sorted(found, key=lambda path: [*map(int, re.findall(r'\d+', path.parts[-3]))])
    else:
        on_path = shutil.which(f'python{version}')
        candidates = [Path(on_path)] if on_path else []
    if not candidates:
        raise SystemExit(f'there is no Python {version} in {folder or "PATH"}; give --pythons')
    return candidates[-1]


def copy_tree(to: Path) -> None:
    """Copy the files that a commit would contain, so that no build of another row is used."""
    names = subprocess.run(
        ['git', 'ls-files', '-z', '--cached', '--others', '--exclude-standard'],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split('\0')
    for name in filter(None, names):
        if not (ROOT / name).is_file():  # removed since the last commit
            continue
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, to / name)


def steps(
    row: Row, python: Path, env: Path, uv: bool, tests: bool
) -> Iterator[tuple[str, list[str]]]:
    """The names of the steps, with their commands.

    Args:
        row: the row.
        python: the interpreter of the row.
        env: the folder of the virtual environment.
        uv: whether uv installs.
        tests: whether there is a step of tests.
    """
    inside = str(env / 'bin/python')
    install = (
        ['uv', 'pip', 'install', '-q', '--python', inside]
        if uv
        else [inside, '-m', 'pip', 'install', '-q']
    )
    yield 'venv', [str(python), '-m', 'venv', str(env)]
    yield (
        'install',
        [
            *install,
            *CONSTRAINTS[row.versions],
            '-e',
            f'.[{",".join([row.line, *UNBOUNDED_EXTRAS.get(row.versions, ())])}]',
            *NEEDED_BY_TESTS,
        ],
    )
    if uv:  # it may install OpenCV's variants in the wrong order (docs/install.md)
        headless = 'opencv-contrib-python-headless'
        yield 'headless', [*install, '--force-reinstall', '--no-deps', headless]
    modules = ['torch', 'mmengine', *(['mmcv'] if row.line != ALONE else [])]
    yield 'versions', [inside, '-W', 'ignore', '-c', VERSIONS_SCRIPT, *modules]
    yield 'train', [inside, 'tools/train.py', CONFIG, '--cfg-options', 'train_cfg.max_epochs=1']
    if tests and row.line == ALONE:
        yield 'alone', [inside, 'benchmarks/mmengine_alone.py']
    elif tests:
        yield 'tests', [inside, '-m', 'pytest', '-n0', '-p', 'no:cacheprovider', *TESTS]


def run(row: Row, python: Path, folder: Path, uv: bool, tests: bool) -> Result:
    """Go through the steps of a row until one fails."""
    start, versions, done, failed, tests_line = time.time(), '', [], '', 'not run'
    tree, log = folder / str(row), folder / f'{row}.log'
    env = {
        name: value
        for name, value in os.environ.items()
        if name not in ('PYTHONPATH', 'VIRTUAL_ENV')
    }
    copy_tree(tree)
    with log.open('w') as file:
        for name, command in steps(row, python, tree / '.venv', uv, tests):
            ran = subprocess.run(
                command,
                cwd=tree,
                env=env,
                text=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            file.write(f'+ {" ".join(command)}\n{ran.stdout}\n')
            file.flush()
            last = ran.stdout.strip().rpartition('\n')[2]
            if name == 'versions':
                versions = last
            if name == 'tests':
                tests_line = last
            if name == 'alone':
                tests_line = 'failed' if ran.returncode else 'its tasks passed'
            if ran.returncode:
                failed = name
                break
            done.append(name)
    shutil.rmtree(tree)
    return Result(versions, done, failed, tests_line, (time.time() - start) / 60)


def table(results: dict[Row, Result]) -> str:
    """The results in Markdown."""
    lines = [
        '| Python | line | versions | torch, mmengine, mmcv | installed | trained | tests | '
        'minutes |',
        '|---|---|---|---|---|---|---|--:|',
    ]
    for row, result in results.items():
        installed, trained = (
            'yes' if name in result.done else 'no' for name in ('install', 'train')
        )
        lines.append(
            f'| {" | ".join(row)} | {result.versions} | {installed} | {trained} | {result.tests} | '
            f'{result.minutes:.1f} |'
        )
    return '\n'.join(lines)


def main() -> int:
    """Run the rows that are asked for. Returns 1 if one fails."""
    parser = argparse.ArgumentParser(description=__doc__.partition('\n\n')[0])
    parser.add_argument(
        '--pythons',
        type=Path,
        help='a folder with a folder for each Python, named by its version; default: PATH',
    )
    parser.add_argument(
        '--only', nargs='+', default=[''], metavar='TEXT', help='rows whose name has one of these'
    )
    parser.add_argument('--uv', action='store_true', help='install with uv in place of pip')
    parser.add_argument('--no-tests', action='store_true', help='only install and train')
    parser.add_argument(
        '--dir', type=Path, default=Path('work_dirs/matrix'), help='where environments and logs go'
    )
    args = parser.parse_args()
    args.dir.mkdir(parents=True, exist_ok=True)
    rows = [row for row in ROWS if any(text in str(row) for text in args.only)]
    if not rows:
        parser.error(f'--only: the rows are {", ".join(map(str, ROWS))}')
    results = {}
    for row in rows:
        results[row] = run(
            row,
            interpreter(args.pythons, row.python),
            args.dir.absolute(),
            args.uv,
            not args.no_tests,
        )
        print(f'{row}: {results[row]}', flush=True)
        if results[row].failed:
            print('\n'.join((args.dir / f'{row}.log').read_text().splitlines()[-60:]))
    print(table(results))
    return int(any(result.failed for result in results.values()))


if __name__ == '__main__':
    sys.exit(main())
