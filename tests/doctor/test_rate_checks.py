"""A warm-up is compared with the length that the schedules are written for."""

from types import SimpleNamespace

import pytest
from torch import nn

from vit_plugin.doctor.rate_checks import unfinished_warm_up, unmatched_custom_keys


@pytest.mark.parametrize(
    ('schedule_length', 'end', 'by_epoch', 'words'),
    [
        (None, 9, False, ''),
        (None, 10, False, 'the warm-up takes 10 iterations, and the training 10'),
        (10, 50, False, ''),  # the runner limits it to half of the run
        (10, 5, True, ''),
        (10, 10, True, 'the warm-up takes 10 epochs, and the training 10'),
    ],
)
def test_warm_up_is_compared_with_schedule_length_in_both_units(
    schedule_length, end, by_epoch, words
):
    examined = SimpleNamespace(
        cfg=dict(
            train_cfg=dict(by_epoch=True, max_epochs=2),
            train_dataloader=dict(batch_size=4),
            schedule_length=schedule_length,
            param_scheduler=[dict(type='LinearLR', start_factor=0.01, by_epoch=by_epoch, end=end)],
        ),
        training_data=range(20),
    )
    findings = [fault for fault, _ in unfinished_warm_up(examined)]
    assert len(findings) == bool(words)
    assert words in ' '.join(findings)


@pytest.mark.parametrize(('type_name', 'count'), [('LinearLR', 1), ('CosineAnnealingLR', 0)])
def test_linear_schedule_without_a_first_factor_begins_with_a_third(type_name, count):
    examined = SimpleNamespace(
        cfg=dict(
            train_cfg=dict(by_epoch=False, max_iters=100),
            param_scheduler=dict(type=type_name, by_epoch=False, end=100),
        )
    )
    assert len([*unfinished_warm_up(examined)]) == count


@pytest.mark.parametrize(
    'schedules', [['LinearLR'], dict(start_factor='0.1', end=100), dict(start_factor=0.1, end=None)]
)
def test_values_of_other_types_are_left_to_the_check_of_the_settings(schedules):
    loop = dict(by_epoch=False, max_iters=100)
    examined = SimpleNamespace(cfg=dict(train_cfg=loop, param_scheduler=schedules))
    assert [*unfinished_warm_up(examined)] == []


def test_custom_key_without_settings_is_left_to_the_optimizer():
    wrapper = dict(paramwise_cfg=dict(custom_keys={'lora': 0.1}))
    examined = SimpleNamespace(model=nn.Linear(1, 1), optim_wrapper=wrapper)
    assert [*unmatched_custom_keys(examined)] == []


def test_stream_of_images_has_no_number_of_iterations():
    examined = SimpleNamespace(
        cfg=dict(
            train_cfg=dict(by_epoch=True, max_epochs=2),
            param_scheduler=dict(start_factor=0.1, by_epoch=False, end=10),
        ),
        training_data=iter(()),
    )
    assert [*unfinished_warm_up(examined)] == []
