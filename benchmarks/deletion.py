"""Run tests in a copy of the repository that lacks projects or a task, so that none needs another.

    python benchmarks deletion [ARGUMENTS OF PYTEST...]
    python benchmarks deletion NAME [ARGUMENTS OF PYTEST...]

Without a name: the tests of the kernel (the package without projects and tasks) run without any
project, those of each project with only the projects that it needs, and all of them without each
task. With the name of a folder of ``vit_plugin/projects``, or ``tasks/`` and a folder of
``vit_plugin/tasks``, all tests run without this one. Paths among the arguments replace the tests.

Removed with a project are its tests, the projects that extend its classes or have it as their
family, the configs that use them and their rows in the tables of docs. With a task go the tasks
that extend it, and the projects whose models are for these tasks alone.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path

from test_house import FOLDERS, SHELLS, TASK_LAYERS, leaving_with

ROOT = Path(__file__).resolve().parents[1]
# tests/test_NAME.py of the kernel; the others there test the whole package, or the docs.
KERNEL_TESTS = ('arch', 'errors', 'house', 'registry', 'suggestions')
# Folders of tests that need the whole repository.
SKIPPED_TESTS = (*SHELLS, 'benchmarks', 'golden', 'support')


def copy_tree(target: Path) -> None:
    """Copy the files that a commit would contain."""
    git = ['git', 'ls-files', '-z', '--cached', '--others', '--exclude-standard']
    listed = subprocess.run(git, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split('\0')):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)


def delete_task(task: str, root: Path) -> None:
    """Remove a task, those that extend it and the projects that have models for these alone."""
    gone, projects = leaving_with(task)
    for folder in (f'{top}/tasks/{name}' for top in ('vit_plugin', 'tests') for name in gone):
        shutil.rmtree(root / folder, ignore_errors=not folder.startswith('vit_plugin'))
    for project in projects:
        delete(project, root)


def delete(project: str, root: Path) -> None:
    """Remove a project, and those that need it, from a copy of the tree."""
    for name in sorted({project, *dependents(project)}):
        if (root / 'vit_plugin/projects' / name).is_dir():
            delete_alone(name, root)


def delete_alone(project: str, root: Path) -> None:
    """Remove a project with its tests, and the configs and rows of docs that name its classes."""
    names = registered_names(project)
    for folder in ('vit_plugin', 'tests'):
        shutil.rmtree(root / folder / 'projects' / project)
    gone = re.compile(rf'\bvit_plugin\.({names})\b')
    while unusable := [
        path for path in root.glob('configs/**/*.py') if gone.search(path.read_text())
    ]:
        for path in unusable:
            path.unlink()
        # Next, the configs that are based on these.
        gone = re.compile('|'.join(re.escape(path.name) for path in unusable))
    row = re.compile(rf'^\| `({names})`.*\n', re.MULTILINE)
    for path in root.glob('docs/*.md'):
        path.write_text(row.sub('', path.read_text()))


def registered_names(project: str) -> str:
    """A pattern of the names that a project registers."""
    tables = import_module(f'vit_plugin.projects.{project}').PROJECT.registered.values()
    return '|'.join(name for table in tables for name in table) or '(?!)'  # matches nothing


@cache
def dependents(project: str) -> frozenset[str]:
    """The projects that extend classes of this one or have it as their family, and theirs."""
    extended = re.compile(rf"MODELS\.get\('vit_plugin\.({registered_names(project)})'\)")
    modules = (ROOT / 'vit_plugin/projects').glob('*/*.py')
    direct = {path.parent.name for path in modules if extended.search(path.read_text())}
    direct = (direct | members(project)) - {project}
    return frozenset(direct.union(*map(dependents, direct)))


def members(family: str) -> set[str]:
    """The projects that have this one as their family."""
    projects = {name: import_module(f'vit_plugin.projects.{name}').PROJECT for name in FOLDERS}
    return {name for name, project in projects.items() if project.family == family}


def tests_of(root: Path) -> list[str]:
    """The tests of the kernel, of projects and of tasks."""
    folders = [path for path in (root / 'tests').iterdir() if [*path.rglob('test_*.py')]]
    return sorted(
        [f'tests/{path.name}' for path in folders if path.name not in SKIPPED_TESTS]
        + [f'tests/test_{name}.py' for name in KERNEL_TESTS]
    )


def passes_without(names: Iterable[str], options: list[str], tests: Sequence[str] = ()) -> bool:
    """Run tests in a copy of the tree without these projects and tasks.

    Args:
        names: the projects, and the tasks as ``tasks/NAME``.
        options: arguments of pytest. Paths of tests among them are run in place of ``tests``.
        tests: the tests to run. Default: those of all that remains.
    """
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        copy_tree(root)
        for name in names:
            if name in TASK_LAYERS:
                delete_task(name.removeprefix('tasks/'), root)
            else:
                delete(name, root)
        if any(option.startswith('tests/') for option in options):
            paths: Sequence[str] = ()
        else:
            paths = tests or tests_of(root)
        command = [sys.executable, '-m', 'pytest', *options, *paths]
        env = dict(os.environ, PYTHONPATH=folder)
        return not subprocess.run(command, cwd=root, env=env, check=False).returncode


def cases(name: str | None) -> Iterator[tuple[str, list[str], list[str]]]:
    """What to try: a title, the projects and tasks to delete, and the tests to run, if not all."""
    if name:
        yield f'Without {name}', [name], []
        return
    yield 'Without any project', FOLDERS, []
    for project in FOLDERS:
        others = [other for other in FOLDERS if project not in {other, *dependents(other)}]
        yield (
            f'{project} without the projects that it does not need',
            others,
            [f'tests/projects/{project}'],
        )
    for task in TASK_LAYERS:
        yield f'Without {task}', [task], []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition('\n\n')[0])
    parser.add_argument('name', metavar='NAME', nargs='?', choices=(*FOLDERS, *TASK_LAYERS))
    args, options = parser.parse_known_args()
    failed = []
    for title, names, tests in cases(args.name):
        print(f'{title}:', flush=True)
        if not passes_without(names, options, tests):
            failed.append(title)
    if failed:
        sys.exit(f'Tests fail: {"; ".join(failed)}.')


if __name__ == '__main__':
    main()
