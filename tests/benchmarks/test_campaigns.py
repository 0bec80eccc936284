"""``python benchmarks`` lists the campaigns, and runs one by its name."""

import subprocess
import sys

import pytest


def run_benchmarks(*arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, 'benchmarks', *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_campaigns_are_listed_with_a_line_each():
    lines = run_benchmarks().stdout.splitlines()
    names = [line.split()[0] for line in lines]
    assert {'parity', 'kills', 'zoo'} <= set(names)
    assert not {'test_parity', 'slurm_cluster'} & set(names)  # modules without a program
    assert all(len(line.split()) > 5 for line in lines)


@pytest.mark.parametrize('name', ['defaults', 'slices'])
def test_a_campaign_can_import_the_helpers_of_the_tests(name):
    assert f'usage: {name}.py' in run_benchmarks(name, '--help').stdout


def test_unknown_names_raise():
    done = run_benchmarks('parrity')
    assert done.returncode == 1
    assert "no campaign 'parrity'" in done.stderr
