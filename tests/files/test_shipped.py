"""What comes with the package, in a built package and in a clone."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from rejection import rejects

from benchmarks import reproducible, wheel
from vit_plugin.config import read_config
from vit_plugin.files import shipped

MINI = 'hybrid_vit/hybrid-vit-mini-p2_1xb16_digits.py'


@pytest.fixture(scope='module')
def project(tmp_path_factory) -> Path:
    """The files that a build needs, without what earlier builds have left beside them."""
    folder = tmp_path_factory.mktemp('project')
    for name in ('vit_plugin', 'configs', 'tools'):
        shutil.copytree(name, folder / name, ignore=shutil.ignore_patterns('__pycache__', '.mim'))
    for name in (
        'setup.py',
        'pyproject.toml',
        'MANIFEST.in',
        'README.md',
        'CHANGELOG.md',
        'LICENSE',
        'model-index.yml',
    ):
        shutil.copy2(name, folder)
    return folder


def build(kind: str, project: Path, folder: Path) -> Path:
    """Run setuptools as pip does. Returns the file that its last line names."""
    code = f'from setuptools import build_meta; print(build_meta.build_{kind}({str(folder)!r}))'
    done = subprocess.run(
        [sys.executable, '-c', code], check=True, cwd=project, capture_output=True, text=True
    )
    return folder / done.stdout.splitlines()[-1]


@pytest.fixture(scope='module')
def built(project, tmp_path_factory) -> Path:
    """The package as a wheel of the source distribution installs it."""
    folder = tmp_path_factory.mktemp('built')
    with tarfile.open(build('sdist', project, folder)) as archive:
        # Debian 12's Python 3.11.2 has no filters, and newer ones warn without
        archive.extractall(
            folder, **(dict(filter='data') if hasattr(tarfile, 'data_filter') else {})
        )
    (source,) = folder.glob('vit_plugin-*/')
    with zipfile.ZipFile(build('wheel', source, folder)) as archive:
        archive.extractall(folder / 'site')
    return folder / 'site'


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob('*')
        if path.is_file() and '__pycache__' not in path.parts
    }


def test_a_wheel_has_every_recipe_and_tool(built):
    for name in ('configs', 'tools'):
        assert files(built / 'vit_plugin/.mim' / name) == files(Path(name))
    assert (built / 'vit_plugin/.mim/model-index.yml').read_bytes() == Path(
        'model-index.yml'
    ).read_bytes()
    modules = [
        {
            path
            for path in files(folder / 'vit_plugin')
            if path.endswith('.py') and not path.startswith('.mim/')
        }
        for folder in (Path(), built)
    ]
    assert modules[0] == modules[1]
    (entry_points,) = built.glob('*.dist-info/entry_points.txt')
    assert 'vit-plugin = vit_plugin.__main__:main' in entry_points.read_text()


@pytest.mark.nightly
def test_a_built_package_inherits_and_runs_from_any_directory(built, tmp_path):
    """``vit_plugin::`` in ``_base_`` and on the command line, where there is nothing but the built
    package.
    """
    (tmp_path / 'mine.py').write_text(
        f"_base_ = 'vit_plugin::{MINI}'\nmodel = dict(backbone=dict(drop_rate=0.1))\n"
    )
    code = (
        'from vit_plugin.config import read_config; import vit_plugin; '
        "print(vit_plugin.__file__)\ncfg = read_config('mine.py'); "
        "print(cfg.model.backbone.drop_rate, '_scope_' in "
        f"cfg.pretty_text)\nprint(read_config('vit_plugin::{MINI}').filename)"
    )
    env = {**os.environ, 'PYTHONPATH': str(built)}
    shown = subprocess.run(
        [sys.executable, '-W', 'ignore', '-c', code],
        check=True,
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
    ).stdout.splitlines()[-3:]
    assert shown == [
        f'{built}/vit_plugin/__init__.py',
        '0.1 False',
        f'{built}/vit_plugin/.mim/configs/{MINI}',
    ]


def test_an_editable_install_has_links(project, tmp_path):
    """Nothing is copied, so that there is one file to edit. Building twice is not an error."""
    for _ in range(2):
        build('editable', project, tmp_path)
    links = {path.name: os.readlink(path) for path in (project / 'vit_plugin/.mim').iterdir()}
    assert links == {name: f'../../{name}' for name in ('configs', 'tools', 'model-index.yml')}
    assert (project / 'vit_plugin/.mim/configs' / MINI).is_file()


def test_an_unknown_recipe_names_the_nearest():
    with rejects(f'no recipe .*; did you mean vit_plugin::{MINI}'):
        read_config('vit_plugin::hybrid_vit/hybrid-vit-mini-p2_1xb16_digit.py')
    with rejects('the recipes are in .*configs'):
        read_config('vit_plugin::1.py')


def test_an_installation_that_lacks_files_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(shipped, 'PACKAGE_FOLDER', tmp_path / 'vit_plugin')
    with rejects('lacks configs .*install vit_plugin again'):
        shipped.config_path('vit_plugin::vit/x.py')


@pytest.mark.nightly
def test_what_is_built_twice_is_the_same():
    pytest.importorskip('build')
    assert reproducible.run(options=['--no-isolation']) == 0


@pytest.mark.nightly
def test_every_command_works_from_the_wheel_in_an_empty_environment():
    pytest.importorskip('build')
    assert wheel.run(extras=[], mim=False) == 0
