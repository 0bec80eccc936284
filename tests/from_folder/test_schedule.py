"""Numbers that follow from how many images there are."""

import pytest
import torch
from mmengine.registry import PARAM_SCHEDULERS

from vit_plugin.engine.optim.schedules import scaled
from vit_plugin.from_folder.schedule import SLOWER_BACKBONE, Schedule, training_sections

SCHEDULE = Schedule(2000, (10, 50), (8, 64), 1e-3, 16, 20)


@pytest.mark.parametrize(
    ('count', 'expected'), [(3, 3), (100, 8), (320, 16), (639, 16), (640, 32), (50000, 64)]
)
def test_an_epoch_has_twenty_steps_where_it_can(count, expected):
    assert SCHEDULE.batch_size_for(count) == expected
    larger = SCHEDULE._replace(batch=(16, 64))
    assert larger.batch_size_for(count) == max(expected, min(count, 16))


@pytest.mark.parametrize(('count', 'expected'), [(80, 50), (3200, 20), (10**6, 10)])
def test_the_epochs_have_about_as_many_steps(count, expected):
    assert SCHEDULE.epochs_for(count, 32) == expected


def test_the_rate_follows_the_root_of_the_batch():
    assert SCHEDULE.rate_for(16) == 1e-3
    assert SCHEDULE.rate_for(64) == 2e-3


@pytest.mark.parametrize('epochs', [1, 2, 50])
def test_a_run_of_any_length_reaches_its_rate(epochs):
    recipe = training_sections(SCHEDULE, epochs, 16, 'accuracy/top1', None)
    steps = 20 * epochs
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=recipe['optim_wrapper']['optimizer']['lr'])
    parts = scaled(recipe['param_scheduler'], epochs, recipe['schedule_length'], True, 20)
    schedules = [
        PARAM_SCHEDULERS.build(dict(part, end=part.get('end', steps), optimizer=optimizer))
        for part in parts
    ]
    rates = []
    for _ in range(steps):
        rates.append(optimizer.param_groups[0]['lr'])
        optimizer.step()
        for schedule in schedules:
            schedule.step()
    assert max(rates) == pytest.approx(1e-3)
    assert rates[-1] < 1e-4


@pytest.mark.parametrize(('epochs', 'interval'), [(1, 1), (50, 1), (51, 2), (300, 6)])
def test_a_run_has_fifty_validations_at_most(epochs, interval):
    recipe = training_sections(SCHEDULE, epochs, 16, 'accuracy/top1', None)
    assert (
        recipe['train_cfg']['val_interval']
        == recipe['default_hooks']['checkpoint']['interval']
        == interval
    )


@pytest.mark.parametrize(
    ('slower', 'keys'), [({}, None), (SLOWER_BACKBONE, dict(backbone=dict(lr_mult=0.1)))]
)
def test_what_begins_with_weights_may_learn_slowly(slower, keys):
    schedule = SCHEDULE._replace(slower=slower)
    recipe = training_sections(schedule, 2, 16, 'accuracy/top1', None)
    assert recipe['optim_wrapper']['paramwise_cfg'].get('custom_keys') == keys
