"""The contract of the house: the kernel knows neither projects nor shells, and nobody a project.

Code reaches a project or a task through what it declares in its ``__init__.py``, and so works
without it.
"""

import ast
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest

from vit_plugin import registry
from vit_plugin.errors import MissingExtraError
from vit_plugin.project import Project, declared, projects
from vit_plugin.task import tasks
from vit_plugin.weights import FORMATS

PACKAGE = Path('vit_plugin')
ENTRIES = ('__init__.py', '__main__.py')  # of the package, which import when they are called
SHELLS = ('commands', 'deploy', 'doctor', 'from_folder', 'inference', 'measure', 'report')
FILES = sorted(
    str(file.relative_to(PACKAGE)) for file in PACKAGE.rglob('*.py') if '.mim' not in file.parts
)
FOLDERS = sorted(path.parent.name for path in PACKAGE.glob('projects/*/__init__.py'))
TASKS = sorted(path.parent.name for path in PACKAGE.glob('tasks/*/__init__.py'))
OF_TASKS = tuple(f'tasks/{name}' for name in TASKS)  # their floors


def floor_of(file: str) -> str:
    """``'kernel'``, ``'shells'``, the name of a project, or ``'tasks/'`` and that of a task."""
    room, *inside = file.split('/')
    if room == 'tasks' and len(inside) > 1:
        return f'tasks/{inside[0]}'
    if room == 'projects' and len(inside) > 1:
        return inside[0]
    return 'shells' if room in SHELLS else 'kernel'


def file_of(dotted: str) -> str | None:
    """The file of a module, or of the module that has this name."""
    parts = dotted.partition(':')[0].split('.')[1:]
    for end in range(len(parts), 0, -1):
        path = '/'.join(parts[:end])
        for file in (f'{path}.py', f'{path}/__init__.py'):
            if (PACKAGE / file).is_file():
                return file
    return None


@cache
def reached(file: str) -> frozenset[str]:
    """The files that a file imports, or names by their modules."""
    package = ['vit_plugin', *Path(file).parent.parts]
    names = set()
    for node in ast.walk(ast.parse((PACKAGE / file).read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            module = package[: len(package) - node.level + 1] if node.level else []
            module = [*module, *(node.module.split('.') if node.module else [])]
            names |= {'.'.join([*module, alias.name]) for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names |= {node.value} if node.value.replace('.', '').isidentifier() else set()
    found = {file_of(name) for name in names if name.startswith('vit_plugin.')}
    return frozenset(found - {None, file})


def reaches(floor: str, others: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """The files of a floor that reach those of other floors."""
    for file in FILES:
        if file not in ENTRIES and floor_of(file) == floor:
            yield from ((file, other) for other in reached(file) if floor_of(other) in others)


def test_the_kernel_reaches_only_the_kernel():
    # The registry names where classes are registered.
    found = {*reaches('kernel', ('shells', *FOLDERS, *OF_TASKS))}
    assert found <= {
        ('registry.py', 'report/__init__.py'),
        ('registry.py', 'inference/sliced_loops.py'),
    }


def test_a_shell_reaches_neither_a_project_nor_a_task():
    assert not [*reaches('shells', (*FOLDERS, *OF_TASKS))]


@pytest.mark.parametrize('task', TASKS)
def test_a_task_reaches_the_kernel_shells_what_it_extends_and_itself(task):
    extended = tasks()[task].extends
    assert {*extended} <= {*TASKS} - {task}
    mine = {f'tasks/{name}' for name in (task, *extended)}
    assert not [*reaches(f'tasks/{task}', (*FOLDERS, *({*OF_TASKS} - mine)))]


@pytest.mark.parametrize('task', TASKS)
def test_a_task_declares_what_is_there_and_imports_nothing(task):
    tree = ast.parse((PACKAGE / 'tasks' / task / '__init__.py').read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    assert {node.module for node in imports} == {'vit_plugin.task'}
    assert ast.get_docstring(tree)
    places = [value for value in vars(tasks()[task]).values() if isinstance(value, str) and value]
    for place in (*places, *tasks()[task].models.values()):
        if ':' in place:
            assert resolve_name(place)


@pytest.mark.parametrize('project', FOLDERS)
def test_a_project_reaches_the_kernel_its_family_and_itself(project):
    family = declaration(project).family
    assert family in ('', *FOLDERS)
    others = (*(one for one in FOLDERS if one not in (project, family)), *OF_TASKS)
    declared = f'projects/{project}/__init__.py'  # names adapters of shells and of tasks
    assert not {pair for pair in reaches(project, ('shells', *others)) if pair[0] != declared}


@pytest.mark.parametrize('project', FOLDERS)
def test_a_declaration_imports_nothing(project):
    tree = ast.parse((PACKAGE / 'projects' / project / '__init__.py').read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    assert [*map(ast.unparse, imports)] == ['from vit_plugin.project import Project']
    assert ast.get_docstring(tree)


@pytest.mark.parametrize('project', FOLDERS)
def test_a_readme_says_on_a_page_what_a_project_is(project):
    lines = (PACKAGE / 'projects' / project / 'README.md').read_text().splitlines()
    assert lines[0].startswith('# ')
    assert len(lines) <= 60


def declaration(project: str) -> Project:
    return import_module(f'vit_plugin.projects.{project}').PROJECT


@pytest.mark.parametrize('project', FOLDERS)
@pytest.mark.filterwarnings('ignore')
def test_what_is_declared_is_the_projects_own_and_there(project):
    found = declaration(project)
    for kind, modules in found.registered.items():
        for name, module in modules.items():
            assert floor_of(file_of(module)) == project, name
            with suppress(MissingExtraError):  # of a framework that is not installed here
                assert getattr(registry, kind).get(name).__module__ == module
    for modules in found.stand_ins.values():
        assert {floor_of(file_of(module)) for module in modules.values()} == {project}
    for place in (*found.published.values(), *found.models.values()):
        assert floor_of(file_of(place)) == project
        assert callable(getattr(resolve_name(place), 'build', resolve_name(place)))
    for name, place in found.formats.items():
        assert floor_of(file_of(place)) == project
        assert FORMATS[name].name == name
    assert all(callable(resolve_name(place)) for place in found.deployed.values())
    assert {*found.pretrains} <= {*found.registered.get('MODELS', ())}


def test_no_two_projects_declare_the_same():
    kinds = {kind for one in projects() for kind in one.registered}
    for kind in kinds:
        count = Counter(name for one in projects() for name in one.registered.get(kind, ()))
        assert not {name for name, number in count.items() if number > 1}
    for table in (
        'unavailable',
        'formats',
        'names',
        'hints',
        'pretrains',
        'deployed',
        'published',
        'offered',
        'models',
    ):
        assert len(declared(table)) == sum(len(getattr(one, table)) for one in projects())


def test_formats_are_tried_in_this_order():
    """Where two explain a checkpoint equally well, the first wins; projects come last."""
    own = [*FORMATS][:19]
    assert (own[0], own[-1]) == ('vit_plugin', 'vitdet')
    others = [
        'vit_adapter',
        *('eomt', 'eomt_dinov3', 'hf_eomt', 'hf_eomt_dinov3', 'pmt', 'pmt_dinov3'),
        *('hf_lw_detr', 'hf_rf_detr', 'transunet'),
    ]
    of_projects = [*FORMATS][19:]
    assert {*of_projects} == {*declared('formats')}
    known = [name for name in others if name in of_projects]  # a project may be new, or left out
    assert [name for name in of_projects if name in others] == known


WITHOUT = """
import json, sys, warnings
warnings.simplefilter('ignore')
import torch
import vit_plugin.data, vit_plugin.engine
from vit_plugin.errors import ConfigError
from vit_plugin.models import VisionTransformer, load_weights
from vit_plugin.project import projects
from vit_plugin.registry import MODELS
from vit_plugin.weights import FORMATS

arch = dict(embed_dims=32, num_layers=1, num_heads=2, feedforward_channels=64, patch_size=8)
model, other = (VisionTransformer(arch, 32) for _ in range(2))
for name in ('vit_plugin', 'timm', 'mmpretrain'):
    load_weights(other, FORMATS[name].export(model.state_dict(), 2)[0])
    x = torch.rand(1, 3, 32, 32)
    assert torch.equal(model(x)[0], other(x)[0])

def gone(name):
    try:
        MODELS.get(name)
    except ConfigError:
        return True
    except ImportError:
        pass
    return False

print(json.dumps(dict(
    number=len(projects()), formats=[*FORMATS], gone=[name for name in sys.argv[1:] if gone(name)],
    loaded=[name for name in sys.modules if name.startswith('vit_plugin.projects.')],
)))
"""


TASKS_WITHOUT = """
import json, sys, warnings
warnings.simplefilter('ignore')
from vit_plugin.commands.flag_rules import RULES
from vit_plugin.deploy.deployed import deploy
from vit_plugin.from_folder.choices import TASK_FLAGS, TASKS
from vit_plugin.from_folder.write import recipe_class
from vit_plugin.inference.predictions import kinds
from vit_plugin.report.outcomes import outcomes_kind
from vit_plugin.report.pictures.data_pictures import find_task_labels

print(json.dumps(dict(
    tasks=TASKS[:-1], recipes=[recipe_class(name).__name__ for name in TASKS[:-1]],
    flags=[*TASK_FLAGS], kinds=[kind.__name__ for kind in kinds()],
    labels=[labels.field for labels in find_task_labels()], outcomes=outcomes_kind({}),
    loaded=[name for name in sys.modules if name.startswith('vit_plugin.tasks.')],
)))
"""


def leaving_with(task: str) -> tuple[list[str], list[str]]:
    """The tasks that extend one, and the projects that have models for these alone."""
    gone = [name for name in TASKS if task in (name, *tasks()[name].extends)]
    models = {folder: {of for of, _ in declaration(folder).models} for folder in FOLDERS}
    return gone, [folder for folder, found in models.items() if found and found <= {*gone}]


def copy_without(folders: list[str], tmp_path: Path) -> None:
    ignored = shutil.ignore_patterns('.mim', '__pycache__')
    shutil.copytree(PACKAGE, tmp_path / PACKAGE, ignore=ignored)
    for folder in folders:
        shutil.rmtree(tmp_path / PACKAGE / folder)


def without(
    folders: list[str], names: list[str], tmp_path: Path, program: str = WITHOUT
) -> dict[str, Any]:
    """What a copy of the package without these folders has."""
    copy_without(folders, tmp_path)
    found = subprocess.run(
        [sys.executable, '-c', program, *names],
        cwd=tmp_path,
        # The copy, with the library anyfolder of this clone.
        env={
            'PYTHONPATH': f'{tmp_path}{os.pathsep}{Path.cwd()}',
            'PATH': '',
            'OMP_NUM_THREADS': '1',
        },
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(found.stdout.splitlines()[-1])


def test_a_family_has_no_family():
    families = {declaration(project).family for project in FOLDERS} - {''}
    assert not {family for family in families if declaration(family).family}


@pytest.mark.nightly
@pytest.mark.parametrize('project', FOLDERS)
def test_all_else_works_without_a_project(project, tmp_path):
    """A family goes with its members."""
    gone = [one for one in FOLDERS if project in (one, declaration(one).family)]
    own = [declaration(one) for one in gone]
    names = [name for one in own for name in (*one.registered.get('MODELS', ()), *one.unavailable)]
    found = without([f'projects/{one}' for one in gone], names, tmp_path)
    assert found['number'] == len(FOLDERS) - len(gone)
    assert not {f'vit_plugin.projects.{one}' for one in gone} & {*found['loaded']}
    assert found['gone'] == names
    formats = {name for one in own for name in one.formats}
    assert found['formats'] == [name for name in FORMATS if name not in formats]


@pytest.mark.nightly
@pytest.mark.parametrize('task', TASKS)
def test_all_else_works_without_a_task(task, tmp_path):
    """Tasks that extend it go with it, and projects that have models for these alone."""
    gone, projects_of = leaving_with(task)
    folders = [*(f'tasks/{one}' for one in gone), *(f'projects/{one}' for one in projects_of)]
    found = without(folders, [], tmp_path, TASKS_WITHOUT)
    left = [name for name in tasks() if name not in gone]
    assert found['tasks'] == left
    assert len(found['recipes']) == len(left)
    flags = {flag for name in left for flag in (*tasks()[name].flags, *tasks()[name].options)}
    assert {*found['flags']} == flags | {'patience', 'skip_invalid'}
    kinds = {tasks()[name].prediction.partition(':')[2] for name in left}
    assert {*found['kinds']} == kinds
    assert len(found['labels']) == sum(bool(tasks()[name].labels) for name in left)
    assert not {name.split('.')[2] for name in found['loaded']} & {*gone}


@pytest.mark.parametrize('has_process', [pytest.param(True, marks=pytest.mark.nightly), False])
def test_the_kernel_works_alone(tmp_path, monkeypatch, capsys, forget, has_process):
    """In a process of its own, and in this one, which has imported torch and the frameworks."""
    folders = [f'projects/{folder}' for folder in FOLDERS]
    names = [
        name for folder in FOLDERS for name in declaration(folder).registered.get('MODELS', ())
    ]
    if has_process:
        found = without(folders, names, tmp_path)
    else:
        copy_without(folders, tmp_path)
        forget('nothing else')
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setattr(sys, 'argv', ['', *names])
        exec(WITHOUT, {})
        assert Path(sys.modules['vit_plugin'].__file__).is_relative_to(tmp_path)
        found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (found['number'], found['loaded'], found['gone']) == (0, [], names)
    assert len(found['formats']) == 19
