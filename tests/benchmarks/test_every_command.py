"""Every command is started as a user starts it; ``benchmarks wheel`` runs them all from a wheel."""

import os
import sys

from benchmarks import every_command
from benchmarks.every_command import CALLS, Call, outcomes, report
from vit_plugin.commands import COMMANDS


def test_every_command_is_started():
    assert {*CALLS} == {*COMMANDS}


# In place of vit-plugin. It makes what it is given, but one command fails, and one lacks an extra.
PROGRAM = """
import sys
command, name = sys.argv[1:]
if command == 'train':
    sys.exit('ImportError: attempted relative import with no known parent package')
if command == 'test':
    sys.exit('Error: vit-plugin test needs gradio, which is not installed; pip install it')
if command == 'infer':
    open(name, 'w').close()
"""


def test_what_is_not_made_is_a_failure(tmp_path, monkeypatch, capsys):
    program = tmp_path / 'program.py'
    program.write_text(PROGRAM)
    calls = {name: Call(f'{name}.txt', f'{name}.txt') for name in ('train', 'test', 'infer', 'zoo')}
    monkeypatch.setattr(every_command, 'CALLS', calls)
    (tmp_path / 'here').mkdir()
    found = {
        name: outcome
        for name, outcome, _ in outcomes(
            [sys.executable, str(program)], tmp_path / 'here', os.environ
        )
    }
    assert found == {
        'train': 'FAILED, status 1',
        'test': 'says which extra it needs',
        'infer': 'ok',
        'zoo': 'FAILED, status 0',
    }
    (tmp_path / 'there').mkdir()
    assert report([sys.executable, str(program)], tmp_path / 'there', os.environ) == 1
    assert 'no known parent package' in capsys.readouterr().out
