"""The remaining time follows the current speed, not the mean since the start."""

from types import SimpleNamespace

import pytest
from mmengine.runner import EpochBasedTrainLoop

from vit_plugin.engine.pace import MIN_SECONDS, MIN_STEPS, Pace, count_validations, seconds_left


def runner_of(epochs: int, epoch: int = 0, validates: bool = True) -> SimpleNamespace:
    """What the forecast needs of a runner, which validates every three epochs of ten iterations."""
    loop = EpochBasedTrainLoop.__new__(EpochBasedTrainLoop)
    loop._max_epochs, loop._epoch, loop.val_begin, loop.val_interval = epochs, epoch, 1, 3
    return SimpleNamespace(
        train_loop=loop,
        _val_loop='built' if validates else None,
        max_iters=10 * epochs,
        iter=10 * epoch + 9,
    )


def pace_after(*step_seconds: float) -> Pace:
    """The pace after steps that took these seconds."""
    pace, now = Pace(0.0), 0.0
    for seconds in step_seconds:
        now += seconds
        pace.step(now)
    return pace


def test_remaining_validations_are_counted():
    assert count_validations(runner_of(7)) == 3  # after 3, 6 and 7 epochs
    assert count_validations(runner_of(7, epoch=1)) == 3
    assert count_validations(runner_of(7, epoch=3)) == 2
    assert count_validations(runner_of(7, epoch=6)) == 1
    assert count_validations(runner_of(7, epoch=7)) == 0
    assert count_validations(runner_of(7, validates=False)) == 0
    late = runner_of(7)
    late.train_loop.val_begin = 5
    assert count_validations(late) == 2


def test_pace_follows_a_change_of_speed():
    slow, fast = [5.0] * 20, [0.1] * int(MIN_SECONDS / 0.1)
    assert pace_after(*fast).seconds_per_step == pytest.approx(0.1)
    assert pace_after(*slow, *fast, 0.1).seconds_per_step == pytest.approx(0.1)
    assert pace_after(*fast, *slow).seconds_per_step == pytest.approx(5)


def test_pace_is_a_mean_of_few_or_long_steps():
    assert pace_after(2.0).seconds_per_step == 2
    assert pace_after(*[60.0] * 5, *[120.0] * MIN_STEPS).seconds_per_step == 120


def test_validations_are_timed_separately():
    pace = pace_after(1.0, 1.0)
    pace.pause(2.0)
    pace.resume(52.0)
    pace.step(53.0)
    assert (pace.seconds_per_step, pace.validation_seconds) == (1, 50)
    assert seconds_left(runner_of(7), pace) == 60 + 3 * 50
