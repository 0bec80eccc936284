"""The time left follows what the machine does now, not what it did since the start."""

from types import SimpleNamespace

import pytest
from mmengine.runner import EpochBasedTrainLoop

from vit_plugin.engine.pace import FEWEST_STEPS, MIN_SECONDS, Pace, seconds_left, validations


def runner_of(epochs: int, epoch: int = 0, validates: bool = True) -> SimpleNamespace:
    loop = EpochBasedTrainLoop.__new__(EpochBasedTrainLoop)
    loop._max_epochs, loop._epoch, loop.val_interval = epochs, epoch, 3
    return SimpleNamespace(
        train_loop=loop,
        _val_loop='built' if validates else None,
        max_iters=10 * epochs,
        iter=10 * epoch + 9,
    )


def paced(*seconds: float) -> Pace:
    """The pace after steps that took these seconds."""
    pace, now = Pace(0.0), 0.0
    for each in seconds:
        now += each
        pace.step(now)
    return pace


def test_the_validations_that_are_left():
    assert validations(runner_of(7)) == 3  # after 3, 6 and 7 epochs
    assert validations(runner_of(7, epoch=6)) == 1
    assert validations(runner_of(7, validates=False)) == 0


def test_a_change_of_the_load_is_followed():
    slow, fast = [5.0] * 20, [0.1] * int(MIN_SECONDS / 0.1)
    assert paced(*fast).seconds_per_step == pytest.approx(0.1)
    assert paced(*slow, *fast, 0.1).seconds_per_step == pytest.approx(0.1)
    assert paced(*fast, *slow).seconds_per_step == pytest.approx(5)


def test_single_steps_and_long_ones_have_a_mean():
    assert paced(2.0).seconds_per_step == 2
    assert paced(*[60.0] * 5, *[120.0] * FEWEST_STEPS).seconds_per_step == 120


def test_a_validation_is_counted_for_itself():
    pace = paced(1.0, 1.0)
    pace.pause(2.0)
    pace.proceed(52.0)
    pace.step(53.0)
    assert (pace.seconds_per_step, pace.validation) == (1, 50)
    assert seconds_left(runner_of(7), pace) == 60 + 3 * 50
