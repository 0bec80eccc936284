"""Batch size, epochs and learning rates, as they follow from the number of images."""

import pytest
import torch
from mmengine.registry import PARAM_SCHEDULERS

from vit_plugin.engine.optim.schedules import scale_schedules
from vit_plugin.from_folder.schedule import SLOWER_BACKBONE, Schedule, training_sections

SCHEDULE = Schedule(
    steps=2000, epochs=(10, 50), batch=(8, 64), rate=1e-3, rate_batch=16, schedule_epochs=20
)


@pytest.mark.parametrize(
    ('count', 'expected'), [(3, 3), (100, 8), (320, 16), (639, 16), (640, 32), (50000, 64)]
)
def test_batch_size_gives_twenty_steps_within_bounds(count, expected):
    assert SCHEDULE.batch_size_for(count) == expected
    at_least_16 = SCHEDULE._replace(batch=(16, 64))
    assert at_least_16.batch_size_for(count) == max(expected, min(count, 16))


@pytest.mark.parametrize(('count', 'expected'), [(80, 50), (3200, 20), (10**6, 10)])
def test_number_of_epochs_gives_about_the_same_steps(count, expected):
    assert SCHEDULE.epochs_for(count, 32) == expected


def test_rate_follows_the_square_root_of_the_batch():
    assert SCHEDULE.rate_for(16) == 1e-3
    assert SCHEDULE.rate_for(64) == 2e-3


@pytest.mark.parametrize('epochs', [1, 2, 50])
def test_runs_of_any_length_reach_their_rate(epochs):
    sections = training_sections(SCHEDULE, epochs, 16, 'accuracy/top1', None)
    steps = 20 * epochs
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=sections['optim_wrapper']['optimizer']['lr'])
    configs = scale_schedules(
        sections['param_scheduler'], epochs, sections['schedule_length'], True, 20
    )
    schedules = [
        PARAM_SCHEDULERS.build(dict(config, end=config.get('end', steps), optimizer=optimizer))
        for config in configs
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
def test_runs_have_at_most_fifty_validations(epochs, interval):
    sections = training_sections(SCHEDULE, epochs, 16, 'accuracy/top1', None)
    assert (
        sections['train_cfg']['val_interval']
        == sections['default_hooks']['checkpoint']['interval']
        == interval
    )


@pytest.mark.parametrize(
    ('rate_factors', 'keys'), [({}, None), (SLOWER_BACKBONE, dict(backbone=dict(lr_mult=0.1)))]
)
def test_pretrained_parts_may_have_lower_rates(rate_factors, keys):
    schedule = SCHEDULE._replace(rate_factors=rate_factors)
    sections = training_sections(schedule, 2, 16, 'accuracy/top1', None)
    assert sections['optim_wrapper']['paramwise_cfg'].get('custom_keys') == keys
