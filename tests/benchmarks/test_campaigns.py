"""``python benchmarks`` lists what there is, and runs what it is asked for."""

import subprocess
import sys

import pytest


def ask(*arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, 'benchmarks', *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_the_list_has_a_line_for_each():
    lines = ask().stdout.splitlines()
    names = [line.split()[0] for line in lines]
    assert {'parity', 'kills', 'zoo'} <= set(names)
    assert not {'test_parity', 'slurm_cluster'} & set(names)  # these run nothing by themselves
    assert all(len(line.split()) > 5 for line in lines)


@pytest.mark.parametrize('name', ['defaults', 'slices'])
def test_a_name_runs_it_with_the_helpers_of_the_tests(name):
    assert f'usage: {name}.py' in ask(name, '--help').stdout


def test_another_name_is_an_error():
    answer = ask('parrity')
    assert answer.returncode == 1
    assert "no campaign 'parrity'" in answer.stderr
