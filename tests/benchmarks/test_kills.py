"""Trainings that are killed and started again through the command line; the campaign does it a
hundred times.
"""

import random

import pytest

from benchmarks.exactness import compare
from benchmarks.kills import SIGNALS, Setting, run_round, start


@pytest.mark.nightly
@pytest.mark.parametrize('kind', SIGNALS)
@pytest.mark.parametrize('launch', ['one', 'ddp', 'fsdp2'])
def test_a_killed_training_ends_as_an_undisturbed_one(tmp_path, launch, kind):
    setting = Setting(launch, 'epoch', 2)
    assert start(setting, setting.write(tmp_path / 'whole')).wait(timeout=300) == 0
    done = run_round(setting, tmp_path / 'killed', kind, 15, random.Random(1))
    assert done.wrong == []
    assert compare(tmp_path / 'whole', tmp_path / 'killed') == []
