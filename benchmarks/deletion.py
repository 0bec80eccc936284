"""Run the remaining tests in a copy of the repository without one of its projects or tasks.

    python benchmarks deletion [NAME [ARGUMENTS OF PYTEST...]]

This shows that nothing else needs it. NAME is a folder of ``vit_plugin/projects``, or ``tasks/``
and a folder of ``vit_plugin/tasks``; by default each is tried in turn. Removed with it are its
tests, the projects that extend its classes or have it as their family, the configs that use them
and their rows in the tables of docs. With a task go the tasks that extend it, and the projects
whose models are for these tasks alone. The tests of the kernel (the package without projects and
tasks), of the other projects and of the other tasks must pass. Paths among the arguments replace
them.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
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
        if (root / 'vit_plugin/projects' / project).is_dir():
            delete(project, root)


def delete(project: str, root: Path) -> None:
    """Remove a project, and those that extend its classes, from a copy of the tree."""
    declared = import_module(f'vit_plugin.projects.{project}').PROJECT
    names = (
        '|'.join(name for table in declared.registered.values() for name in table) or '(?!)'
    )  # matches nothing
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
    extended = re.compile(rf"MODELS\.get\('vit_plugin\.({names})'\)")
    modules = (root / 'vit_plugin/projects').glob('*/*.py')
    others = {path.parent.name for path in modules if extended.search(path.read_text())}
    for other in sorted(others | members(project)):
        if (root / 'vit_plugin/projects' / other).is_dir():
            delete(other, root)
    row = re.compile(rf'^\| `({names})`.*\n', re.MULTILINE)
    for path in root.glob('docs/*.md'):
        path.write_text(row.sub('', path.read_text()))


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


def passes_without(project: str, options: list[str]) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        copy_tree(root)
        if project in TASK_LAYERS:
            delete_task(project.removeprefix('tasks/'), root)
        else:
            delete(project, root)
        names_tests = any(option.startswith('tests/') for option in options)
        command = [
            sys.executable,
            '-m',
            'pytest',
            *options,
            *([] if names_tests else tests_of(root)),
        ]
        env = dict(os.environ, PYTHONPATH=folder)
        return not subprocess.run(command, cwd=root, env=env, check=False).returncode


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition('\n\n')[0])
    parser.add_argument('project', metavar='NAME', nargs='?', choices=(*FOLDERS, *TASK_LAYERS))
    args, options = parser.parse_known_args()
    needed = []
    for project in [args.project] if args.project else (*FOLDERS, *TASK_LAYERS):
        print(f'Without {project}:', flush=True)
        if not passes_without(project, options):
            needed.append(project)
    if needed:
        sys.exit(f'Tests fail without {", ".join(needed)}.')


if __name__ == '__main__':
    main()
