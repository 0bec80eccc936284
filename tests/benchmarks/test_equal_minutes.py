"""Comparisons of trainings with equal minutes, with a simulated clock."""

import sys
from pathlib import Path

import pytest

from benchmarks import equal_minutes
from benchmarks.equal_minutes import Contender, Cores, compare


class Clock(Cores):
    """Simulates a start of 10 s, and epochs of 2 s (contender 'quick') or 5 s."""

    def run(self, command):
        name, epochs = command
        return 10.0 + int(epochs) * (2 if name == 'quick' else 5)


def contender(name):
    """A contender whose AP is the seed, which is at the end of the folder's name."""
    return Contender(
        lambda folder, epochs, seed: [name, str(epochs)],
        lambda folder, run: dict(AP=float(folder.name.rpartition('_')[2])),
    )


def test_each_contender_trains_for_the_same_minutes(tmp_path):
    contenders = {name: contender(name) for name in ('quick', 'slow')}
    assert [*compare(contenders, [1, 2], 2, Clock(), tmp_path)] == [
        'quick: 10 s to start, 2.0 s for an epoch',
        'slow: 10 s to start, 5.0 s for an epoch',
        'quick: 1.0 minutes, 25 epochs, AP 0.5 ± 0.7 (0.0, 1.0)',
        'slow: 1.0 minutes, 10 epochs, AP 0.5 ± 0.7 (0.0, 1.0)',
        'quick: 2.0 minutes, 55 epochs, AP 0.5 ± 0.7 (0.0, 1.0)',
        'slow: 2.0 minutes, 22 epochs, AP 0.5 ± 0.7 (0.0, 1.0)',
    ]


def test_the_seconds_of_the_start_may_not_count(tmp_path):
    lines = [*compare(dict(slow=contender('slow')), [1], 1, Clock(), tmp_path, counts_start=False)]
    assert lines[-1] == 'slow: 1.2 minutes, 12 epochs, AP 0.0'


def test_short_epochs_are_timed_by_several_epochs(tmp_path):
    timed_epochs = []

    class Short(Clock):
        def run(self, command):
            timed_epochs.append(int(command[1]))
            return 10.0 + timed_epochs[-1] / 2

    lines = compare(dict(quick=contender('quick')), [1], 1, Short(), tmp_path)
    assert next(lines) == 'quick: 10 s to start, 0.5 s for an epoch'
    assert timed_epochs[:3] == [1, 3, 9]


def test_time_is_measured_on_the_cpu():
    assert Cores().run([sys.executable, '-c', 'import time; time.sleep(1)']) < 0.9


def test_failures_include_the_programs_message():
    cores = Cores()
    free = cores.qsize()
    with pytest.raises(RuntimeError, match='no such data'):
        cores.run([sys.executable, '-c', 'raise SystemExit("no such data")'])
    assert cores.qsize() == free


@pytest.mark.parametrize('one_validation', [True, False])
def test_our_command_validates_once_on_request(one_validation):
    ours = equal_minutes.plugin_contender(
        Path('x'), 'detection', ['--model', 'dino'], one_validation
    )
    command = ours.train(Path('run'), 7, 1)
    assert command[command.index('--epochs') + 1] == '7'
    assert ('train_cfg.val_interval=7' in command) == one_validation
