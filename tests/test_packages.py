"""The wheel of anyfolder works without torch, and that of vit_plugin contains anyfolder."""

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[1]
BUILT = 'anyfolder', 'vit_plugin', 'configs', 'tools'  # folders that are in a wheel
LEFT_OUT = shutil.ignore_patterns('__pycache__', 'build', '*.egg-info', '.mim')
# Packages that must not be importable in the empty environment.
FOREIGN = 'torch', 'mmengine', 'vit_plugin', 'matplotlib'


def run(*words: object, **options: object) -> None:
    """Run a program without PYTHONPATH, so that it does not import from this repository."""
    env = {name: value for name, value in os.environ.items() if name != 'PYTHONPATH'}
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, env=env, **options)
    assert done.returncode == 0, done.stdout + done.stderr


def build_wheel(source: Path, out: Path) -> Path:
    """Build the wheel of a project with the setuptools that is installed, and return its path."""
    run(sys.executable, '-m', 'build', '--wheel', '--no-isolation', '-o', out, source)
    [wheel] = out.glob('*.whl')
    return wheel


@pytest.fixture(scope='module')
def source(tmp_path_factory) -> Path:
    """A copy of what is built, since builds leave folders in the source tree."""
    folder = tmp_path_factory.mktemp('source')
    for name in BUILT:
        shutil.copytree(ROOT / name, folder / name, ignore=LEFT_OUT)
    for name in ('setup.py', 'pyproject.toml', 'README.md', 'LICENSE', 'model-index.yml'):
        shutil.copy(ROOT / name, folder)
    return folder


@pytest.fixture(scope='module')
def wheel(source, tmp_path_factory) -> Path:
    """The wheel of anyfolder."""
    return build_wheel(source / 'anyfolder', tmp_path_factory.mktemp('wheel'))


@pytest.mark.nightly
def test_the_wheel_of_anyfolder_works_alone(tmp_path, wheel):
    venv.create(tmp_path / 'empty', with_pip=True)
    python = tmp_path / 'empty' / ('Scripts' if os.name == 'nt' else 'bin') / 'python'
    run(python, '-m', 'pip', 'install', '--quiet', f'{wheel}[test]')
    absent = ' or '.join(f'find_spec({name!r})' for name in FOREIGN)
    run(
        python,
        '-c',
        f'from importlib.util import find_spec; assert not ({absent})',
        cwd=tmp_path,  # which Python searches first
    )
    run(python.with_name('anyfolder'), '--version')
    for name in ('tests', 'pyproject.toml'):  # not the package, so that the installed one is tested
        source, target = ROOT / 'anyfolder' / name, tmp_path / 'own' / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=LEFT_OUT)
        else:
            target.parent.mkdir(exist_ok=True)
            shutil.copy(source, target)
    run(python, '-m', 'pytest', '-x', cwd=tmp_path / 'own')


@pytest.mark.nightly
def test_the_wheel_of_vit_plugin_contains_anyfolder(tmp_path, source, wheel):
    vit_plugin_files = {
        info.filename: info.CRC for info in ZipFile(build_wheel(source, tmp_path)).infolist()
    }
    anyfolder_files = {info.filename: info.CRC for info in ZipFile(wheel).infolist()}
    code = {name: crc for name, crc in anyfolder_files.items() if name.startswith('anyfolder/')}
    assert 'anyfolder/writers/conversion.py' in code
    assert 'anyfolder/layouts/known/COCO.yaml' in code
    assert code.items() <= vit_plugin_files.items()
    assert not {name for name in vit_plugin_files if name.startswith('anyfolder/')} - {*code}
