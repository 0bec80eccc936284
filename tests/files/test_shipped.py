"""The files that come with the package, in a wheel and in an editable installation."""

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
    """The files that a build needs, without those of earlier builds."""
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


def build(target: str, project: Path, folder: Path) -> Path:
    """Run setuptools as pip does, and return the file that its last line names.

    Args:
        target: ``'sdist'``, ``'wheel'`` or ``'editable'``.
        project: folder of the project.
        folder: where the file is written.
    """
    code = f'from setuptools import build_meta; print(build_meta.build_{target}({str(folder)!r}))'
    done = subprocess.run(
        [sys.executable, '-c', code], check=True, cwd=project, capture_output=True, text=True
    )
    return folder / done.stdout.splitlines()[-1]


@pytest.fixture(scope='module')
def built(project, tmp_path_factory) -> Path:
    """The package as it is installed by a wheel that is built from the source distribution."""
    folder = tmp_path_factory.mktemp('built')
    with tarfile.open(build('sdist', project, folder)) as archive:
        # Python 3.11.2 of Debian 12 has no filters, and newer versions warn without one.
        archive.extractall(
            folder, **(dict(filter='data') if hasattr(tarfile, 'data_filter') else {})
        )
    (source,) = filter(Path.is_dir, folder.glob('vit_plugin-*'))
    with zipfile.ZipFile(build('wheel', source, folder)) as archive:
        archive.extractall(folder / 'site')
    return folder / 'site'


def files(folder: Path) -> dict[str, bytes]:
    """The content of each file in a folder, by its relative path."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob('*')
        if path.is_file() and '__pycache__' not in path.parts
    }


def test_wheels_have_all_modules_recipes_and_tools(built):
    for name in ('configs', 'tools'):
        assert files(built / 'vit_plugin/.mim' / name) == files(Path(name))
    assert (built / 'vit_plugin/.mim/model-index.yml').read_bytes() == Path(
        'model-index.yml'
    ).read_bytes()
    source_modules, built_modules = (
        {
            path
            for path in files(folder / 'vit_plugin')
            if path.endswith('.py') and not path.startswith('.mim/')
        }
        for folder in (Path(), built)
    )
    assert source_modules == built_modules
    (entry_points,) = built.glob('*.dist-info/entry_points.txt')
    assert 'vit-plugin = vit_plugin.__main__:main' in entry_points.read_text()


@pytest.mark.nightly
def test_recipes_of_a_built_package_are_read_from_any_directory(built, tmp_path):
    """By ``vit_plugin::`` as ``_base_`` and as the path of a config."""
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
    lines = subprocess.run(
        [sys.executable, '-W', 'ignore', '-c', code],
        check=True,
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
    ).stdout.splitlines()[-3:]
    assert lines == [
        f'{built}/vit_plugin/__init__.py',
        '0.1 False',
        f'{built}/vit_plugin/.mim/configs/{MINI}',
    ]


def test_editable_installations_have_links(project, tmp_path):
    """No file is copied, so there is only one to edit. A second build does not raise."""
    for _ in range(2):
        build('editable', project, tmp_path)
    links = {path.name: os.readlink(path) for path in (project / 'vit_plugin/.mim').iterdir()}
    assert links == {name: f'../../{name}' for name in ('configs', 'tools', 'model-index.yml')}
    assert (project / 'vit_plugin/.mim/configs' / MINI).is_file()


def test_unknown_recipes_raise_with_the_nearest_name():
    with rejects(f'no recipe .*; did you mean vit_plugin::{MINI}'):
        read_config('vit_plugin::hybrid_vit/hybrid-vit-mini-p2_1xb16_digit.py')
    with rejects('the recipes are in .*configs'):
        read_config('vit_plugin::1.py')


def test_incomplete_installations_raise(monkeypatch, tmp_path):
    monkeypatch.setattr(shipped, 'PACKAGE_FOLDER', tmp_path / 'vit_plugin')
    with rejects('lacks configs .*install vit_plugin again'):
        shipped.config_path('vit_plugin::vit/x.py')


@pytest.mark.nightly
def test_builds_are_reproducible():
    pytest.importorskip('build')
    assert reproducible.run(options=['--no-isolation']) == 0


@pytest.mark.nightly
def test_every_command_works_from_the_wheel_in_an_empty_environment():
    pytest.importorskip('build')
    assert wheel.run(extras=[], mim=False) == 0


def test_configs_in_the_home_directory_are_found(tmp_path, monkeypatch):
    """The shell does not expand ``--config=~/own.py``."""
    monkeypatch.setenv('HOME', str(tmp_path))
    (tmp_path / 'own.py').touch()
    assert shipped.config_path('~/own.py') == str(tmp_path / 'own.py')
