"""Trainings that are killed and restarted by the command line, as in benchmarks/kills.py."""

import random

import pytest

from benchmarks.exactness import compare
from benchmarks.kills import SIGNALS, Setting, run_round, start


@pytest.mark.nightly
@pytest.mark.parametrize('signal_name', SIGNALS)
@pytest.mark.parametrize('launch', ['one', 'ddp', 'fsdp2'])
def test_a_killed_training_ends_like_an_undisturbed_one(tmp_path, launch, signal_name):
    setting = Setting(launch, 'epoch', 2)
    assert start(setting, setting.write(tmp_path / 'whole')).wait(timeout=300) == 0
    done = run_round(setting, tmp_path / 'killed', signal_name, 15, random.Random(1))
    assert done.wrong == []
    assert compare(tmp_path / 'whole', tmp_path / 'killed') == []
