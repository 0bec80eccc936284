"""The calls of every command. ``benchmarks wheel`` runs them from an installed wheel."""

import os
import sys

from benchmarks import every_command
from benchmarks.every_command import CALLS, Call, outcomes, report
from vit_plugin.commands import COMMANDS


def test_there_is_a_call_of_every_command():
    assert {*CALLS} == {*COMMANDS}


# In place of vit-plugin: train fails, test lacks an extra, infer writes its file, zoo does not.
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


def test_calls_that_do_not_write_their_file_are_failures(tmp_path, monkeypatch, capsys):
    program = tmp_path / 'program.py'
    program.write_text(PROGRAM)
    calls = {name: Call(f'{name}.txt', f'{name}.txt') for name in ('train', 'test', 'infer', 'zoo')}
    monkeypatch.setattr(every_command, 'CALLS', calls)
    (tmp_path / 'first').mkdir()
    outcome_of = {
        name: outcome
        for name, outcome, _ in outcomes(
            [sys.executable, str(program)], tmp_path / 'first', os.environ
        )
    }
    assert outcome_of == {
        'train': 'FAILED, status 1',
        'test': 'says which extra it needs',
        'infer': 'ok',
        'zoo': 'FAILED, status 0',
    }
    (tmp_path / 'second').mkdir()
    assert report([sys.executable, str(program)], tmp_path / 'second', os.environ) == 1
    assert 'no known parent package' in capsys.readouterr().out
