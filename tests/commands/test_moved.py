"""Former commands start the benchmark that they have become, in a clone."""

import os
import sys
from pathlib import Path

import pytest

from vit_plugin.commands import moved
from vit_plugin.commands.moved import MOVED_COMMANDS, moved_command


@pytest.mark.parametrize(
    ('line', 'benchmark', 'arguments'),
    [
        ('benchmark --latency', 'speed', ['--latency']),
        ('sweep a.py --seeds 2', 'sweep', ['a.py', '--seeds', '2']),
        ('probe a.pth --masks=masks', 'dense_probe', ['a.pth', '--masks=masks']),
    ],
)
def test_former_commands_run_their_benchmark(run_command, monkeypatch, line, benchmark, arguments):
    calls = []
    monkeypatch.setattr(os, 'execv', lambda *args: sys.exit(calls.append(args)))
    done = run_command(line)
    program = Path('benchmarks').resolve()
    assert calls == [(sys.executable, [sys.executable, str(program), benchmark, *arguments])]
    assert done.stderr.startswith('vit-plugin ')
    assert f'is now python benchmarks {benchmark}, in a clone' in done.stderr
    assert (program / f'{benchmark}.py').is_file()


def test_former_commands_without_a_clone_raise(run_command, monkeypatch, tmp_path):
    monkeypatch.setattr(moved, 'PACKAGE_FOLDER', tmp_path / 'vit_plugin')
    done = run_command('sweep a.py')
    assert done.returncode == 1
    assert done.stderr == (
        'Error: vit-plugin sweep is now python benchmarks sweep, in a clone of the repository; '
        'clone it and run that.\n'
    )


def test_other_commands_are_not_moved():
    assert moved_command('probe', ['a.pth', '--probes', 'knn']) is None
    assert {moved_command(name, []) for name in ('train', 'masks')} == {None}
    assert all((Path('benchmarks') / f'{name}.py').is_file() for name in MOVED_COMMANDS.values())
