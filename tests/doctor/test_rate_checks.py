"""A warm-up is compared with the length that the schedules are written for."""

from types import SimpleNamespace

import pytest

from vit_plugin.doctor.rate_checks import unfinished_warm_up


@pytest.mark.parametrize(
    ('end', 'by_epoch', 'words'),
    [
        (30, False, ''),
        (50, False, 'the warm-up takes 50 iterations, and the training 50'),
        (5, True, ''),
        (10, True, 'the warm-up takes 10 epochs, and the training 10'),
    ],
)
def test_warm_up_is_compared_with_schedule_length_in_both_units(end, by_epoch, words):
    examined = SimpleNamespace(
        cfg=dict(
            train_cfg=dict(by_epoch=True, max_epochs=2),
            train_dataloader=dict(batch_size=4),
            schedule_length=10,
            param_scheduler=[dict(type='LinearLR', start_factor=0.01, by_epoch=by_epoch, end=end)],
        ),
        training_data=range(20),
    )
    findings = [fault for fault, _ in unfinished_warm_up(examined)]
    assert len(findings) == bool(words)
    assert words in ' '.join(findings)
