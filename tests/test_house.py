"""Import rules between the layers: kernel, shells, projects and tasks, see docs/design.md.

The kernel is what everything needs, and a shell is what users run. A project is a folder for a
paper, and a task a folder for a task such as detection. Code reaches these two only through the
declaration in their ``__init__.py``, so everything else works when such a folder is removed.
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
from vit_plugin.project import Project, declared_rows, projects
from vit_plugin.task import tasks
from vit_plugin.weights import FORMATS

PACKAGE = Path('vit_plugin')
# Files of the package's own folder that may import any layer, inside functions.
ENTRIES = ('__init__.py', '__main__.py')
SHELLS = ('commands', 'deploy', 'doctor', 'from_folder', 'inference', 'measure', 'report')
FILES = sorted(
    str(file.relative_to(PACKAGE)) for file in PACKAGE.rglob('*.py') if '.mim' not in file.parts
)
FOLDERS = sorted(path.parent.name for path in PACKAGE.glob('projects/*/__init__.py'))
TASKS = sorted(path.parent.name for path in PACKAGE.glob('tasks/*/__init__.py'))
TASK_LAYERS = tuple(f'tasks/{name}' for name in TASKS)
NUM_KERNEL_FORMATS = 19  # weight formats of the kernel, which come before those of the projects


def layer_of(file: str) -> str:
    """``'kernel'``, ``'shells'``, the name of a project, or ``'tasks/NAME'``."""
    folder, *inside = file.split('/')
    if folder == 'tasks' and len(inside) > 1:
        return f'tasks/{inside[0]}'
    if folder == 'projects' and len(inside) > 1:
        return inside[0]
    return 'shells' if folder in SHELLS else 'kernel'


def file_of(dotted: str) -> str | None:
    """The file of a dotted path, which may end with a name that the module defines."""
    parts = dotted.partition(':')[0].split('.')[1:]
    for end in range(len(parts), 0, -1):
        path = '/'.join(parts[:end])
        for file in (f'{path}.py', f'{path}/__init__.py'):
            if (PACKAGE / file).is_file():
                return file
    return None


@cache
def imported_files(file: str) -> frozenset[str]:
    """The files of the package that a file imports, or names by a module path in a string."""
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
    files = {file_of(name) for name in names if name.startswith('vit_plugin.')}
    return frozenset(files - {None, file})


def imports_across(layer: str, others: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Pairs of a file in a layer and a file in one of the other layers that it imports."""
    for file in FILES:
        if file not in ENTRIES and layer_of(file) == layer:
            yield from (
                (file, other) for other in imported_files(file) if layer_of(other) in others
            )


def test_the_kernel_imports_only_the_kernel():
    # The registry names the modules that it imports to register classes.
    outside = {*imports_across('kernel', ('shells', *FOLDERS, *TASK_LAYERS))}
    assert outside <= {
        ('registry.py', 'report/__init__.py'),
        ('registry.py', 'inference/sliced_loops.py'),
    }


def test_a_shell_imports_neither_a_project_nor_a_task():
    assert not [*imports_across('shells', (*FOLDERS, *TASK_LAYERS))]


@pytest.mark.parametrize('task', TASKS)
def test_a_task_imports_of_tasks_only_itself_and_those_it_extends(task):
    extended = tasks()[task].extends
    assert {*extended} <= {*TASKS} - {task}
    allowed = {f'tasks/{name}' for name in (task, *extended)}
    assert not [*imports_across(f'tasks/{task}', (*FOLDERS, *({*TASK_LAYERS} - allowed)))]


@pytest.mark.parametrize('task', TASKS)
def test_a_task_declaration_resolves_and_imports_only_task(task):
    tree = ast.parse((PACKAGE / 'tasks' / task / '__init__.py').read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    assert {node.module for node in imports} == {'vit_plugin.task'}
    assert ast.get_docstring(tree)
    references = [
        value for value in vars(tasks()[task]).values() if isinstance(value, str) and value
    ]
    for reference in (*references, *tasks()[task].models.values()):
        if ':' in reference:
            assert resolve_name(reference)


@pytest.mark.parametrize('project', FOLDERS)
def test_a_project_imports_of_projects_only_itself_and_its_family(project):
    family = declaration(project).family
    assert family in ('', *FOLDERS)
    others = (*(name for name in FOLDERS if name not in (project, family)), *TASK_LAYERS)
    init = f'projects/{project}/__init__.py'  # may name adapters for shells and tasks
    assert not {pair for pair in imports_across(project, ('shells', *others)) if pair[0] != init}


@pytest.mark.parametrize('project', FOLDERS)
def test_a_project_declaration_imports_only_project(project):
    tree = ast.parse((PACKAGE / 'projects' / project / '__init__.py').read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    assert [*map(ast.unparse, imports)] == ['from vit_plugin.project import Project']
    assert ast.get_docstring(tree)


@pytest.mark.parametrize('project', FOLDERS)
def test_a_project_readme_fits_on_a_page(project):
    lines = (PACKAGE / 'projects' / project / 'README.md').read_text().splitlines()
    assert lines[0].startswith('# ')
    assert len(lines) <= 60


def declaration(project: str) -> Project:
    return import_module(f'vit_plugin.projects.{project}').PROJECT


@pytest.mark.parametrize('project', FOLDERS)
@pytest.mark.filterwarnings('ignore')
def test_declared_names_resolve_within_their_project(project):
    declared_project = declaration(project)
    for registry_name, modules in declared_project.registered.items():
        for name, module in modules.items():
            assert layer_of(file_of(module)) == project, name
            with suppress(MissingExtraError):  # of a framework that is not installed here
                assert getattr(registry, registry_name).get(name).__module__ == module
    for modules in declared_project.stand_ins.values():
        assert {layer_of(file_of(module)) for module in modules.values()} == {project}
    # A reference 'module:name' names a function, or an object with a method `build`.
    for reference in (*declared_project.published.values(), *declared_project.models.values()):
        assert layer_of(file_of(reference)) == project
        assert callable(getattr(resolve_name(reference), 'build', resolve_name(reference)))
    for name, reference in declared_project.formats.items():
        assert layer_of(file_of(reference)) == project
        assert FORMATS[name].name == name
    for reference in declared_project.deployed.values():
        # A copy of the package may lack the task that deploys it.
        if PACKAGE.joinpath(*reference.split('.')[1:3]).is_dir():
            assert callable(resolve_name(reference))
    assert {*declared_project.pretraining_backbones} <= {
        *declared_project.registered.get('MODELS', ())
    }


def test_no_two_projects_declare_the_same_name():
    registry_names = {
        registry_name for project in projects() for registry_name in project.registered
    }
    for registry_name in registry_names:
        count = Counter(
            name for project in projects() for name in project.registered.get(registry_name, ())
        )
        assert not {name for name, uses in count.items() if uses > 1}
    for table in (
        'unavailable',
        'formats',
        'names',
        'hints',
        'pretraining_backbones',
        'deployed',
        'published',
        'offered',
        'models',
    ):
        assert len(declared_rows(table)) == sum(
            len(getattr(project, table)) for project in projects()
        )


def test_formats_are_tried_in_this_order():
    """If two formats explain a checkpoint equally well, the first wins; projects come last."""
    of_kernel = [*FORMATS][:NUM_KERNEL_FORMATS]
    assert (of_kernel[0], of_kernel[-1]) == ('vit_plugin', 'vitdet')
    expected = [
        'vit_adapter',
        *('eomt', 'eomt_dinov3', 'hf_eomt', 'hf_eomt_dinov3', 'pmt', 'pmt_dinov3'),
        *('hf_lw_detr', 'hf_rf_detr', 'transunet'),
    ]
    of_projects = [*FORMATS][NUM_KERNEL_FORMATS:]
    assert {*of_projects} == {*declared_rows('formats')}
    # A project may have been added, or removed with its folder.
    present = [name for name in expected if name in of_projects]
    assert [name for name in of_projects if name in expected] == present


# Programs that run in a copy of the package without some folders, and print as JSON what works.
WITHOUT_PROJECTS = """
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

def is_missing(name):
    try:
        MODELS.get(name)
    except ConfigError:
        return True
    except ImportError:
        pass
    return False

print(json.dumps(dict(
    number=len(projects()), formats=[*FORMATS],
    missing=[name for name in sys.argv[1:] if is_missing(name)],
    loaded=[name for name in sys.modules if name.startswith('vit_plugin.projects.')],
)))
"""


WITHOUT_TASKS = """
import json, sys, warnings
warnings.simplefilter('ignore')
from vit_plugin.commands.flag_rules import RULES
from vit_plugin.deploy.deployed import deploy
from vit_plugin.from_folder.choices import TASK_FLAGS, TASKS
from vit_plugin.from_folder.write import recipe_class
from vit_plugin.inference.predictions import prediction_classes
from vit_plugin.report.outcomes import outcomes_class
from vit_plugin.report.pictures.data_pictures import find_task_labels

print(json.dumps(dict(
    tasks=TASKS[:-1], recipes=[recipe_class(name).__name__ for name in TASKS[:-1]],
    flags=[*TASK_FLAGS], kinds=[row.__name__ for row in prediction_classes()],
    labels=[labels.field for labels in find_task_labels()], outcomes=outcomes_class({}),
    loaded=[name for name in sys.modules if name.startswith('vit_plugin.tasks.')],
)))
"""


def leaving_with(task: str) -> tuple[list[str], list[str]]:
    """A task with those that extend it, and the projects that have models for these tasks only."""
    gone = [name for name in TASKS if task in (name, *tasks()[name].extends)]
    tasks_of = {folder: {name for name, _ in declaration(folder).models} for folder in FOLDERS}
    return gone, [folder for folder, names in tasks_of.items() if names and names <= {*gone}]


def copy_without(folders: list[str], tmp_path: Path) -> None:
    """Copy the package without some of its folders."""
    ignored = shutil.ignore_patterns('.mim', '__pycache__')
    shutil.copytree(PACKAGE, tmp_path / PACKAGE, ignore=ignored)
    for folder in folders:
        shutil.rmtree(tmp_path / PACKAGE / folder)


def run_without(
    folders: list[str], names: list[str], tmp_path: Path, program: str = WITHOUT_PROJECTS
) -> dict[str, Any]:
    """What a program prints, as JSON, in a copy of the package without some folders.

    ``names`` are its arguments: for ``WITHOUT_PROJECTS``, classes that should be missing.
    """
    copy_without(folders, tmp_path)
    done = subprocess.run(
        [sys.executable, '-c', program, *names],
        cwd=tmp_path,
        # The copy comes before the clone, which provides the library anyfolder.
        env={
            'PYTHONPATH': f'{tmp_path}{os.pathsep}{Path.cwd()}',
            'PATH': '',
            'OMP_NUM_THREADS': '1',
        },
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def test_a_family_has_no_family():
    families = {declaration(project).family for project in FOLDERS} - {''}
    assert not {family for family in families if declaration(family).family}


@pytest.mark.nightly
@pytest.mark.parametrize('project', FOLDERS)
def test_everything_else_works_without_a_project(project, tmp_path):
    """A family is removed together with its members."""
    removed = [name for name in FOLDERS if project in (name, declaration(name).family)]
    declarations = [declaration(name) for name in removed]
    names = [
        name
        for declared_project in declarations
        for name in (*declared_project.registered.get('MODELS', ()), *declared_project.unavailable)
    ]
    report = run_without([f'projects/{name}' for name in removed], names, tmp_path)
    assert report['number'] == len(FOLDERS) - len(removed)
    assert not {f'vit_plugin.projects.{name}' for name in removed} & {*report['loaded']}
    assert report['missing'] == names
    formats = {name for declared_project in declarations for name in declared_project.formats}
    assert report['formats'] == [name for name in FORMATS if name not in formats]


@pytest.mark.nightly
@pytest.mark.parametrize('task', TASKS)
def test_everything_else_works_without_a_task(task, tmp_path):
    """Tasks that extend it are removed too, and projects with models for these tasks only."""
    removed, projects_of = leaving_with(task)
    folders = [
        *(f'tasks/{name}' for name in removed),
        *(f'projects/{name}' for name in projects_of),
    ]
    report = run_without(folders, [], tmp_path, WITHOUT_TASKS)
    remaining = [name for name in tasks() if name not in removed]
    assert report['tasks'] == remaining
    assert len(report['recipes']) == len(remaining)
    flags = {flag for name in remaining for flag in (*tasks()[name].flags, *tasks()[name].options)}
    assert {*report['flags']} == flags | {'patience', 'skip_invalid'}
    kinds = {tasks()[name].prediction.partition(':')[2] for name in remaining}
    assert {*report['kinds']} == kinds
    assert len(report['labels']) == sum(bool(tasks()[name].labels) for name in remaining)
    assert not {name.split('.')[2] for name in report['loaded']} & {*removed}


@pytest.mark.parametrize('in_new_process', [pytest.param(True, marks=pytest.mark.nightly), False])
def test_the_kernel_works_alone(tmp_path, monkeypatch, capsys, forget, in_new_process):
    """In a new process, and in this one, where torch and the frameworks are already imported."""
    folders = [f'projects/{folder}' for folder in FOLDERS]
    names = [
        name for folder in FOLDERS for name in declaration(folder).registered.get('MODELS', ())
    ]
    if in_new_process:
        report = run_without(folders, names, tmp_path)
    else:
        copy_without(folders, tmp_path)
        forget('no other package')
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setattr(sys, 'argv', ['', *names])
        exec(WITHOUT_PROJECTS, {})
        assert Path(sys.modules['vit_plugin'].__file__).is_relative_to(tmp_path)
        report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (report['number'], report['loaded'], report['missing']) == (0, [], names)
    assert len(report['formats']) == NUM_KERNEL_FORMATS
