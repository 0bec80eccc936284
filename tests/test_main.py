"""The command ``vit-plugin``: its help, and one sentence if a framework or library is missing."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from vit_plugin import __main__ as command
from vit_plugin import __version__
from vit_plugin.commands import COMMANDS, convert
from vit_plugin.commands.moved import MOVED_COMMANDS
from vit_plugin.errors import ConfigError

# Scripts that run a command from a clone, as OpenMMLab's tools do.
TOOLS = sorted(path.stem for path in Path('tools').glob('*.py') if path.stem != 'torchrun')

DIGITS = 'vit_plugin::vit/vit-mini-p2_1xb16_digits.py'


def test_help_names_every_command(capsys):
    assert command.main([]) == 0
    shown = capsys.readouterr().out
    assert command.main(['--help']) == 0
    assert capsys.readouterr().out == shown
    listed = {line.split()[0] for line in shown.splitlines() if line.startswith('  ')}
    assert listed == {*COMMANDS}
    assert '  train       Train a model.\n' in shown


def test_every_tool_has_a_command():
    assert {name.removesuffix('_weights') for name in TOOLS} - {*MOVED_COMMANDS} == {*COMMANDS}


def test_modules_are_commands_or_shared():
    modules = {path.stem for path in Path('vit_plugin/commands').glob('*.py')}
    shared = {
        'allocator',
        'command_line',
        'early',
        'entry',
        'flag_rules',
        'flags',
        'frameworks',
        'moved',
        'one_sentence',
    }
    assert modules == {*COMMANDS, '__init__'} | shared


def test_the_docs_list_every_command():
    listed = re.search(
        'The commands are (.*?), in any', Path('docs/tools.md').read_text(), re.DOTALL
    )[1]
    assert {name.removeprefix('vit-plugin ') for name in re.findall('`(.*?)`', listed)} == {
        *COMMANDS
    }


def test_version(capsys):
    assert command.main(['--version']) == 0
    assert capsys.readouterr().out == f'{__version__}\n'


def test_missing_framework_prints_one_sentence(tmp_path):
    (tmp_path / 'mmengine.py').write_text("raise ModuleNotFoundError('no', name='mmengine')")
    code = (
        f"import sys; from vit_plugin.__main__ import main; sys.exit(main(['train', '{DIGITS}']))"
    )
    done = subprocess.run(
        [sys.executable, '-c', code], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (1, '')
    assert done.stderr.startswith(
        'Error: vit_plugin needs mmengine, which is not installed; in a clone of vit_plugin: pip '
    )
    assert done.stderr.count('\n') == 1


@pytest.mark.nightly
@pytest.mark.parametrize(
    'code',
    [
        f"from vit_plugin.__main__ import main; sys.exit(main(['train', '{DIGITS}']))",
        'import vit_plugin.models',
    ],
)
def test_opencv_without_its_libraries_raises_one_sentence(tmp_path, code):
    text = 'libxcb.so.1: cannot open shared object file: No such file or directory'
    (tmp_path / 'cv2.py').write_text(f"raise ImportError('{text}', name='cv2')")
    done = subprocess.run(
        [sys.executable, '-c', f'import sys; {code}'], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (1, '')
    assert (
        'cv2 needs libxcb.so.1, which this system does not have; ' in done.stderr.splitlines()[-1]
    )
    assert 'models' in code or done.stderr.count('\n') == 1


def test_traceback_is_shown_on_request(tmp_path, monkeypatch, capsys):
    def main(args):
        raise ImportError('cannot import name x from y')

    (tmp_path / 'a.pth').touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(convert, 'main', main)
    call = ['convert', 'a.pth', '--out', 'b.pth']
    with pytest.raises(SystemExit, match='cannot import name x from y'):
        command.main(call)
    with pytest.raises(ImportError, match='cannot import name x from y'):
        command.main([*call, '--traceback'])
    call[1] = 'missing.pth'
    with pytest.raises(ConfigError):
        command.main([*call, '--traceback'])


# Valid arguments of each tool, since wrong ones are reported before anything is imported.
VALID_ARGUMENTS = {
    'convert_weights': ['a.pth', '--out', 'b.pth'],
    'demo': ['a.pth'],
    'doctor': [DIGITS],
    'embed': ['a.pth', 'b.jpg', '--out', 'o.npz'],
    'export': ['a.pth', '--out', 'b.onnx'],
    'infer': ['a.pth', 'b.jpg'],
    'plan': [DIGITS, '--gpus', '1', '--gpu-memory', '8'],
    'pretrain': ['--data', 'photos'],
    'probe': ['a.pth'],
    'test': ['a.pth'],
    'train': [DIGITS],
    'visualize': ['a.pth', 'cam', 'b.jpg', '--out', 'o'],
    'zoo': [],
}


@pytest.mark.parametrize(
    'tool',
    [
        pytest.param(tool, marks=[] if tool == 'infer' else [pytest.mark.nightly])
        for tool in TOOLS
        if tool not in MOVED_COMMANDS
    ],
)
def test_tool_without_opencv_libraries_prints_one_sentence(tmp_path, tool):
    for name in ('a.pth', 'b.jpg'):
        (tmp_path / name).touch()
    (tmp_path / 'photos').mkdir()
    (tmp_path / 'cv2.py').write_text(
        "raise ImportError('libxcb.so.1: cannot open shared object file: No such file or "
        "directory', name='cv2')"
    )
    done = subprocess.run(
        [sys.executable, Path(f'tools/{tool}.py').resolve(), *VALID_ARGUMENTS[tool]],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=dict(os.environ, PYTHONPATH=f'{tmp_path}{os.pathsep}{Path.cwd()}'),
    )
    assert done.returncode == 1
    assert re.fullmatch(
        'Error: .* cv2 needs libxcb.so.1, .*opencv-contrib-python-headless.*', done.stderr.strip()
    )
