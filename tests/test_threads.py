"""How long torch's threads wait for one another is set by commands, and by no import."""

import os
import subprocess
import sys

import pytest

from vit_plugin.threads import BRIEF, POLICIES, describe_threads, wait_briefly


@pytest.fixture
def environment(monkeypatch):
    for name in (*BRIEF, *POLICIES):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_a_short_wait_is_set_before_torch_alone(environment):
    wait_briefly()  # torch is imported here
    assert not {*BRIEF} & {*os.environ}
    environment.delitem(sys.modules, 'torch')
    wait_briefly()
    assert {name: os.environ.pop(name) for name in BRIEF} == BRIEF


@pytest.mark.parametrize('name', [*BRIEF, *POLICIES])
def test_what_the_environment_sets_is_left_as_it_is(name, environment):
    environment.delitem(sys.modules, 'torch')
    environment.setenv(name, 'theirs')
    wait_briefly()
    assert {*BRIEF, *POLICIES} & {*os.environ} == {name}
    assert describe_threads(2).endswith(f': {name}=theirs.')


def test_the_sentence_names_what_decides(environment):
    assert describe_threads(1) == 'torch computes with 1 thread.'
    assert "the runtime's own defaults" in describe_threads(4)
    environment.setenv('GOMP_SPINCOUNT', '3000')
    assert 'with 4 threads' in describe_threads(4)
    assert describe_threads(4).endswith(': GOMP_SPINCOUNT=3000.')


@pytest.mark.nightly
@pytest.mark.parametrize(
    ('first', 'found'), [('import vit_plugin, vit_plugin.models', 'None'), ('', '3000')]
)
def test_a_command_sets_it_and_an_import_does_not(first, found, environment):
    code = f"""
import atexit, os
atexit.register(lambda: print(os.environ.get('GOMP_SPINCOUNT')))
{first or 'from vit_plugin.__main__ import main; main(["zoo", "nothing-like-it"])'}
"""
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == found, done
