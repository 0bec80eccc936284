"""Numbers that follow from how many images there are."""

import pytest

from vit_plugin.apps.from_data.schedule import batch_size_for, epochs_for, for_batch


@pytest.mark.parametrize(('count', 'expected'), [(3, 3), (100, 8), (320, 16), (639, 16), (640, 32), (50000, 64)])
def test_an_epoch_has_twenty_steps_where_it_can(count, expected):
    assert batch_size_for(count, 64) == expected


@pytest.mark.parametrize(('count', 'expected'), [(80, 50), (3200, 20), (10**6, 10)])
def test_the_epochs_have_about_as_many_steps(count, expected):
    assert epochs_for(count, 32, 2000, 10, 50) == expected


def test_the_rate_follows_the_root_of_the_batch():
    assert for_batch(4e-4, 64, 64) == 4e-4
    assert for_batch(4e-4, 64, 16) == 2e-4
